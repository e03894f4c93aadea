import { LABEL_PROVIDER } from '../api/names.ts';
import { DEFAULT_REFLECTION, type ReflectionRule } from '../api/reflection.ts';
import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import type { Informer } from '../kube/informer.ts';
import { type GroupResource, groupResourceKey } from './reflect/rules.ts';
import type { Tenants } from './tenants.ts';

interface OffloadedNamespacesOptions {
  /** Undefined when it has been deleted. */
  virtualNode: () => VirtualNode | undefined;
  /** As it was before it was deleted. */
  lastSeen: () => VirtualNode;
  tenants: Tenants;
  homePods: Informer<Pod>;
}

/** Which namespaces the virtual node looks after: those asked for, and those of which something is still over there. */
export class OffloadedNamespaces {
  readonly #options: OffloadedNamespacesOptions;

  constructor(options: OffloadedNamespacesOptions) {
    this.#options = options;
  }

  /** The namespaces to look after: what the status is to say. */
  get mappings(): NamespaceMapping[] {
    return this.#mappings((mapping) => this.#isInUse(mapping));
  }

  /** Those of which is to be known whether they are still to be looked after: until the status no longer names them. */
  get watched(): NamespaceMapping[] {
    return this.#mappings(() => true);
  }

  /** As the namespace's rules are now; undefined where the defaults hold, as they do while it is being taken out. */
  rulesOf(homeNamespace: string): NamespaceMapping['reflection'] {
    const asked = this.#options.virtualNode()?.spec.namespaces;
    return asked?.find((mapping) => mapping.homeNamespace === homeNamespace)?.reflection;
  }

  isAsked(homeNamespace: string): boolean {
    const mapping = this.#options.tenants.of(homeNamespace)?.mapping;
    return mapping !== undefined && includesMapping(this.#options.virtualNode()?.spec.namespaces, mapping);
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
    // Of a VirtualNode that is gone nothing is asked any more, and all that runs is to be ended.
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
    // A peer takes what is left over there with the tenant namespace.
    const isPeered = this.#options.lastSeen().metadata.labels?.[LABEL_PROVIDER] !== undefined;
    if (isPeered && tenant.isForsaken && !this.isAsked(homeNamespace)) return this.#hasBound(homeNamespace);
    return !tenant.synced || tenant.holdsOurs || this.hasPods(homeNamespace);
  }

  #hasBound(homeNamespace: string): boolean {
    return [...this.#options.homePods.list()].some((pod) => pod.metadata.namespace === homeNamespace);
  }
}

/**
 * The namespaces to look after: those asked for, and those no longer asked for in which something of ours still lives.
 * Without the latter, taking a namespace out of the list would leave its remote pods running with nobody to end them.
 * One that came back under another tenant namespace waits until the old one is empty.
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
 * The mapping with the rules that hold for it, and with those that have been taken away while something is still there by
 * them, as None: so that a restart knows them, too.
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

/** Whether the namespace is on record, and the kind named there or one of those that everybody knows of. */
const recordsKind = (recorded: NamespaceMapping | undefined, kind: GroupResource): boolean =>
  recorded !== undefined &&
  [...(recorded.reflection ?? []), ...DEFAULT_REFLECTION].some(
    (rule) => keyOfRule(rule) === groupResourceKey(kind),
  );
