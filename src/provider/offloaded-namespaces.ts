import { LABEL_PROVIDER } from '../api/names.ts';
import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import type { Informer } from '../kube/informer.ts';
import { effectiveMappings, includesMapping, recordsKind, withRetiredRules } from './mappings.ts';
import { groupResourceKey, type GroupResource } from './reflect/rules.ts';
import type { Tenants } from './tenants.ts';

export interface OffloadedNamespacesOptions {
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
