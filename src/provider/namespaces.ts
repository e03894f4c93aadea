import { LABEL_PROVIDER } from '../api/names.ts';
import { isRefusedForGood } from '../api/sent-abroad.ts';
import { DEFAULT_REFLECTION, type ReflectionRule } from '../api/reflection.ts';
import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import type { History } from './restored/home-history.ts';
import { type GroupResource, groupResourceKey } from './reflect/rules.ts';
import type { Siblings } from './siblings.ts';
import type { Tenants } from './tenants.ts';

/** What every part needs that acts in offloaded namespaces. */
export interface CommonParts {
  home: KubeClient;
  foreign: KubeClient;
  homePods: Informer<Pod>;
  tenants: Tenants;
  namespaces: OffloadedNamespaces;
  siblings: Siblings;
  /** Whether the foreign cluster answers. */
  contact: () => boolean;
  /** Whether what is absent at home may be taken for gone. */
  history: History;
  events: EventRecorder;
  clock: Clock;
}

interface OffloadedNamespacesOptions {
  /** Undefined when it has been deleted. */
  virtualNode: () => VirtualNode | undefined;
  /** As it was before it was deleted. */
  lastSeen: () => VirtualNode;
  tenants: Tenants;
  homePods: Informer<Pod>;
  siblings: Pick<Siblings, 'heirOf'>;
}

/** Which namespaces the virtual node looks after: those asked for, and those that still have something over there. */
export class OffloadedNamespaces {
  readonly #options: OffloadedNamespacesOptions;

  constructor(options: OffloadedNamespacesOptions) {
    this.#options = options;
  }

  /** The namespaces to look after: what the status is to say. */
  get mappings(): NamespaceMapping[] {
    return this.#mappings((mapping) => this.#isInUse(mapping));
  }

  /** The namespaces to watch: also those that the status still names, to know whether they are still in use. */
  get watched(): NamespaceMapping[] {
    return this.#mappings(() => true);
  }

  /** As the namespace's rules are now, or were when it was taken out; undefined where the defaults hold. */
  rulesOf(homeNamespace: string): NamespaceMapping['reflection'] {
    const asked = this.#options.virtualNode()?.spec.namespaces;
    const inForce = asked?.find((mapping) => mapping.homeNamespace === homeNamespace);
    return (inForce ?? this.#options.tenants.of(homeNamespace)?.mapping)?.reflection;
  }

  /** False while a namespace is being taken out of the VirtualNode: nothing new is begun there, nothing kept for later. */
  isAsked(homeNamespace: string): boolean {
    const mapping = this.#options.tenants.of(homeNamespace)?.mapping;
    return mapping !== undefined && includesMapping(this.#options.virtualNode()?.spec.namespaces, mapping);
  }

  /** False also from the moment that it is to be taken out, while its pods still end. */
  isAccepting(homeNamespace: string): boolean {
    const asked = this.#options.virtualNode()?.spec.namespaces;
    const isLeaving = asked?.some((mapping) => mapping.homeNamespace === homeNamespace && mapping.leaving);
    return isLeaving !== true && this.isAsked(homeNamespace);
  }

  /** Whether nothing is kept over there for that pod: it was refused, since its namespace is being taken out. */
  needsNothing(pod: Pod): boolean {
    return isRefusedForGood(pod) && !this.isAccepting(pod.metadata.namespace ?? '');
  }

  /**
   * A pod may be begun only where the VirtualNode's status already names its namespace: else a namespace that is
   * taken out again while no agent runs would leave remote pods that nobody knows of.
   */
  isRecorded(homeNamespace: string): boolean {
    const mapping = this.#options.tenants.of(homeNamespace)?.mapping;
    const virtualNode = this.#options.virtualNode();
    if (mapping === undefined || virtualNode === undefined) return true;
    return includesMapping(virtualNode.status?.namespaces, mapping);
  }

  recordsKind(homeNamespace: string, kind: GroupResource): boolean {
    return recordsKind(this.#recorded(homeNamespace), kind);
  }

  hasPods(homeNamespace: string): boolean {
    return (this.#options.tenants.of(homeNamespace)?.pods.size ?? 0) > 0 || this.#hasBound(homeNamespace);
  }

  #mappings(isInUse: (mapping: NamespaceMapping) => boolean): NamespaceMapping[] {
    const { spec, status } = this.#options.lastSeen();
    const { tenants } = this.#options;
    const isGone = this.#options.virtualNode() === undefined;
    // A VirtualNode that is gone asks for nothing any more, and everything that runs has to end.
    const asked = isGone ? [] : (spec.namespaces ?? []);
    const recorded = [...(status?.namespaces ?? []), ...(isGone ? (spec.namespaces ?? []) : [])];
    const inForce = asked.map((mapping) =>
      withRetiredRules(
        mapping,
        this.#recorded(mapping.homeNamespace),
        (kind) => tenants.of(mapping.homeNamespace)?.mirror.isDrained(groupResourceKey(kind)) ?? false,
      ),
    );
    return effectiveMappings(inForce, recorded, isInUse);
  }

  #recorded(homeNamespace: string): NamespaceMapping | undefined {
    const { status } = this.#options.lastSeen();
    return status?.namespaces?.find((mapping) => mapping.homeNamespace === homeNamespace);
  }

  #isInUse({ homeNamespace, tenantNamespace }: NamespaceMapping): boolean {
    const tenant = this.#options.tenants.of(homeNamespace);
    if (tenant?.mapping.tenantNamespace !== tenantNamespace) return true;
    // When a peering ends, the peer deletes the tenant namespace with everything in it.
    const isPeered = this.#options.lastSeen().metadata.labels?.[LABEL_PROVIDER] !== undefined;
    if (isPeered && tenant.isHomeForbidden && !this.isAsked(homeNamespace))
      return this.#hasBound(homeNamespace);
    if (!tenant.synced || tenant.holdsOwn || this.hasPods(homeNamespace)) return true;
    return tenant.holdsCopies((kind) => this.#options.siblings.heirOf(tenant.mapping, kind) !== 'Others');
  }

  /** A pod that was refused for good has nothing over there, and its template may bring it back for ever. */
  #hasBound(homeNamespace: string): boolean {
    const { homePods } = this.#options;
    return Iterator.from(homePods.keys()).some((key) => {
      if (!key.startsWith(`${homeNamespace}/`)) return false;
      const pod = homePods.get(key);
      return pod !== undefined && !isRefusedForGood(pod);
    });
  }
}

/**
 * The namespaces to look after: those asked for, and those no longer asked for that still contain something of ours. Without
 * the latter, taking a namespace out of the list would leave its remote pods running with nobody to end them. A namespace that
 * came back under another tenant namespace waits until the old one is empty.
 *
 * @param recorded from the VirtualNode's status, so that a restart knows them too
 */
export function effectiveMappings(
  asked: readonly NamespaceMapping[],
  recorded: readonly NamespaceMapping[],
  inUse: (mapping: NamespaceMapping) => boolean,
): NamespaceMapping[] {
  const draining = recorded.filter((mapping) => !includesMapping(asked, mapping) && inUse(mapping));
  const busy = new Set(draining.map(({ homeNamespace }) => homeNamespace));
  return [...asked.filter(({ homeNamespace }) => !busy.has(homeNamespace)), ...draining];
}

export const includesMapping = (
  mappings: readonly NamespaceMapping[] | undefined,
  { homeNamespace, tenantNamespace }: NamespaceMapping,
): boolean =>
  mappings?.some(
    (mapping) => mapping.homeNamespace === homeNamespace && mapping.tenantNamespace === tenantNamespace,
  ) ?? false;

/** As the CRD has it. */
const MAX_RULES = 32;

/**
 * The mapping with its rules, and with former rules by which something is still over there, as policy None: so they survive a
 * restart.
 *
 * @param recorded the same mapping, from the VirtualNode's status
 * @param isDrained whether nothing of the kind is over there any more
 */
function withRetiredRules(
  mapping: NamespaceMapping,
  recorded: NamespaceMapping | undefined,
  isDrained: (kind: GroupResource) => boolean,
): NamespaceMapping {
  const asked = mapping.reflection ?? [];
  const known = new Set([...asked, ...DEFAULT_REFLECTION].map(keyOfRule));
  const retired = (recorded?.reflection ?? [])
    .filter((rule) => !known.has(keyOfRule(rule)) && !isDrained({ group: '', ...rule }))
    .map((rule): ReflectionRule => ({ ...rule, policy: 'None' }));
  if (retired.length === 0) return mapping;
  return { ...mapping, reflection: [...asked, ...retired].slice(0, MAX_RULES) };
}

const keyOfRule = ({ group = '', resource }: ReflectionRule): string => groupResourceKey({ group, resource });

/** Whether the status names the namespace, and names the kind there, or the kind has a default rule. */
const recordsKind = (recorded: NamespaceMapping | undefined, kind: GroupResource): boolean =>
  recorded !== undefined &&
  [...(recorded.reflection ?? []), ...DEFAULT_REFLECTION].some(
    (rule) => keyOfRule(rule) === groupResourceKey(kind),
  );
