import type { EventReason } from '../../api/reasons/events.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import type { EventRecorder, EventSubject } from '../../kube/events.ts';
import type { Tenant } from '../tenants.ts';
import type { MirroredKindName } from './mirrored-kind.ts';
import type { OpenKind, Side } from './mirror-sides.ts';

const KIND_REASONS = {
  /** One of the two clusters does not know the kind. */
  notServed: 'KindNotServed',
  /** We may not read or write it. */
  forbidden: 'KindForbidden',
  /** The rule can have no effect. */
  badRule: 'InvalidReflectionRule',
} as const;

interface MirrorTroublesOptions {
  events: EventRecorder;
  /** Gets each event, too: people look at it first, and events of namespaces are easily overlooked. */
  virtualNode: () => EventSubject;
}

interface EventText {
  reason: EventReason;
  message: string;
}

/**
 * Tells people, by events, of kinds that cannot be mirrored: which, on which side, and what to do. Once for each, until it
 * works and fails again. Other kinds are not affected.
 */
export class MirrorTroubles {
  readonly #options: MirrorTroublesOptions;
  /** By namespace, kind and side: the reason of the last event. */
  readonly #told = new Map<string, string>();

  constructor(options: MirrorTroublesOptions) {
    this.#options = options;
  }

  /** Looks at one kind of a namespace. A kind that no rule names counts only where home has objects of it. */
  look(tenant: Tenant, name: MirroredKindName): void {
    const open = tenant.mirror.of(name);
    if (open === undefined) return;
    for (const side of ['home', 'remote'] as const) {
      const key = `${tenant.mapping.homeNamespace}/${name}/${side}`;
      const { status, error } = open[side].contact;
      if (error === undefined) this.#told.delete(key);
      else if (isMatter(tenant, open)) this.#tell(tenant, key, eventFor(open, side, status));
    }
  }

  /** Tells of rules of the namespace that can have no effect. */
  lookAtRules(tenant: Tenant): void {
    const prefix = `${tenant.mapping.homeNamespace}/`;
    const bad = new Map(tenant.mirror.bad.map((rule) => [`${prefix}${rule.kind}/rule`, rule]));
    for (const key of this.#told.keys()) {
      if (key.startsWith(prefix) && key.endsWith('/rule') && !bad.has(key)) this.#told.delete(key);
    }
    for (const [key, { kind, problem, staysHome }] of bad) {
      const home = staysHome ? ', and none of it travels' : '';
      const message = `the reflection rule for ${kind} has no effect${home}: ${problem}`;
      this.#tell(tenant, key, { reason: KIND_REASONS.badRule, message });
    }
  }

  #tell({ mapping }: Tenant, key: string, news: EventText | undefined): void {
    if (news === undefined || this.#told.get(key) === news.reason) return;
    this.#told.set(key, news.reason);
    const { events, virtualNode } = this.#options;
    const { homeNamespace: name } = mapping;
    // With a namespace of its own, so that `kubectl get events -n` shows the event where the objects are.
    const namespace: EventSubject = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, namespace: name },
    };
    events.event(namespace, 'Warning', news.reason, news.message);
    const subject = { apiVersion: API_VERSION, kind: 'VirtualNode', ...virtualNode() };
    events.event(subject, 'Warning', news.reason, `namespace ${name}: ${news.message}`);
  }
}

function isMatter({ mapping }: Tenant, { ruled, home }: OpenKind): boolean {
  const { group, resource } = ruled.kind.ruledBy;
  if (ruled.rule.policy === 'None') return false;
  const isNamed = mapping.reflection?.some(
    (rule) => (rule.group ?? '') === group && rule.resource === resource,
  );
  return isNamed === true || home.size > 0;
}

function eventFor({ ruled }: OpenKind, side: Side, status: number | undefined): EventText | undefined {
  const { group, version, plural } = ruled.kind.type;
  const what = group === '' ? `${plural} (${version})` : `${plural}.${group} (${version})`;
  if (ruled.kind.copyType !== undefined && side === 'remote' && (status === 403 || status === 404)) {
    const todo =
      'it is of an earlier version, or its tenant was made by one (`tributary tenant` makes it anew). Pods that they select wait, ' +
      'unless a rule of the namespace with policy None leaves them at home';
    return {
      reason: status === 404 ? KIND_REASONS.notServed : KIND_REASONS.forbidden,
      message: `the foreign cluster does not take ${what}: ${todo}`,
    };
  }
  const others = 'what else travels is not affected, and it is tried again';
  if (status === 404) {
    const where = side === 'home' ? 'this cluster does' : 'the foreign cluster does';
    const todo =
      side === 'home'
        ? 'install its CustomResourceDefinition, namespaced and of that version, or take the rule away'
        : 'its administrator must install the CustomResourceDefinition, namespaced and of that version';
    return { reason: KIND_REASONS.notServed, message: `${where} not know ${what}: ${todo}; ${others}` };
  }
  if (status !== 403) return undefined;
  const todo =
    side === 'home'
      ? 'the agent may not read it here: make a ClusterRole with the label tributary.dev/aggregate-to-agents: "true" ' +
        'that allows get, list and watch'
      : 'the foreign cluster does not let us: its administrator must name the kind in the SharingPolicy, under reflectableKinds';
  return { reason: KIND_REASONS.forbidden, message: `${what} cannot be reflected: ${todo}; ${others}` };
}
