import { isConditionTrue } from '../../api/conditions.ts';
import { ANNOTATION_NODE_NAME, LABEL_CLUSTER } from '../../api/names.ts';
import {
  type HomeApiServer,
  VIRTUAL_NODE_CONDITIONS,
  type VirtualNode,
  virtualNodes,
} from '../../api/virtual-node.ts';
import type { KubeClient } from '../../kube/client.ts';
import { replaceIfDiffers } from '../../kube/write.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { type VirtualNodePlan, virtualNodePlans } from '../offer/shapes.ts';
import type { BorrowingCaches } from './caches.ts';
import type { Work } from './facts.ts';
import {
  clusterLabel,
  ingressClassesOf,
  nodeNameOf,
  offeredStorageClassesOf,
  recordName,
  storageClassesOf,
  whoHas,
} from './names.ts';
import { mappingsOf, usedNamespaces } from './namespaces.ts';
import { secretName } from './secret.ts';
import type { NodesState } from './status.ts';
import type { Teardown } from './teardown.ts';
import { draftVirtualNode, isOf, type WantedVirtualNode, wantedVirtualNode } from './virtual-node.ts';

export interface NodeSetupOptions {
  client: KubeClient;
  caches: BorrowingCaches;
  teardown: Teardown;
  systemNamespace: string;
  homeApiServer?: HomeApiServer;
}

/** As the kind VirtualNode takes them; one that it does not take must not hold up the rest. */
const FEATURE = /^[A-Z][A-Za-z0-9]*(\/[A-Z][A-Za-z0-9]*)*$/u;

export type NamedPlan = VirtualNodePlan & { name: string };

/** The VirtualNodes of one provider: as many and as large as was agreed on. */
export class NodeSetup {
  readonly #options: NodeSetupOptions;

  constructor(options: NodeSetupOptions) {
    this.#options = options;
  }

  /** Undefined while a newer contract waits for the provider: then nothing is changed. */
  plans({ course, facts, advertisement }: Work): NamedPlan[] | undefined {
    const base = advertisement.metadata.annotations?.[ANNOTATION_NODE_NAME];
    if (course.terms === undefined || base === undefined) return undefined;
    const { shape, maxNodes } = facts.wish.policy?.spec ?? {};
    const plans = virtualNodePlans(advertisement.spec.offer, course.terms.resources, shape, maxNodes);
    return plans.map((plan) => ({ ...plan, name: nodeNameOf(base, plan.suffix) }));
  }

  /** Makes them as planned. Returns after how many milliseconds to look again at those that go. */
  async apply(work: Work, plans: readonly NamedPlan[]): Promise<number | undefined> {
    for (const plan of plans) await this.#applyOne(work, plan);
    return this.#removeSurplus(work, new Set(plans.map(({ name }) => name)));
  }

  state({ clusterID }: Work, wanted: readonly string[]): NodesState {
    const { virtualNodes: cache } = this.#options.caches;
    const found = wanted.flatMap((name) => cache.get(name) ?? []).filter((node) => isOf(node, clusterID));
    const sleeper = found.find((node) => !isReady(node));
    const why = sleeper?.status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready);
    const shown =
      sleeper === undefined ? '' : `; ${sleeper.metadata.name}: ${why?.message ?? 'no agent has spoken yet'}`;
    return {
      complete: wanted.length > 0 && found.length === wanted.length,
      ready: found.filter(isReady).length,
      message: `${found.filter(isReady).length} of ${wanted.length} ready${shown}`,
    };
  }

  async #applyOne(work: Work, plan: NamedPlan): Promise<void> {
    const { client, caches } = this.#options;
    const { clusterID, signal } = work;
    const wanted = this.#wanted(work, plan);
    const current = caches.virtualNodes.get(plan.name);
    if (current === undefined || !isOf(current, clusterID)) {
      await this.#create(work, wanted);
    } else if (current.metadata.deletionTimestamp === undefined) {
      const desired = wantedVirtualNode(current, wanted);
      await replaceIfDiffers(client, virtualNodes, current, { desired, signal });
    }
  }

  #wanted({ clusterID, course, facts, advertisement }: Work, plan: NamedPlan): WantedVirtualNode {
    const { systemNamespace, homeApiServer } = this.#options;
    const { wish, wanted } = facts;
    const { clusterName, offer } = advertisement.spec;
    const base = advertisement.metadata.annotations?.[ANNOTATION_NODE_NAME];
    const { nodeLabels, ingressClasses, storageClasses } = wish.policy?.spec ?? {};
    const { name, resources, labels, declaredFeatures } = plan;
    return {
      name,
      provider: clusterID,
      kubeconfigSecretRef: { namespace: systemNamespace, name: secretName(clusterID) },
      resources,
      labels: { ...labels, [LABEL_CLUSTER]: clusterLabel(clusterName, clusterID, base), ...nodeLabels },
      namespaces: mappingsOf(usedNamespaces(course.terms?.namespaces ?? [], wanted), wanted),
      ingressClasses: ingressClassesOf(ingressClasses, offer.classes.ingress),
      storageClasses: storageClassesOf(storageClasses),
      offeredStorageClasses: offeredStorageClassesOf(offer.classes.storage),
      closed: course.closed !== undefined,
      ...(homeApiServer !== undefined && { homeApiServer }),
      ...(declaredFeatures && { declaredFeatures: declaredFeatures.filter((name) => FEATURE.test(name)) }),
    };
  }

  async #create({ clusterID, ours, signal }: Work, wanted: WantedVirtualNode): Promise<void> {
    const { client } = this.#options;
    const { name } = wanted;
    const kind = await whoHas(this.#options, { name, clusterID }, signal);
    if (kind !== undefined) {
      // Nothing is bound to the name yet: another one will do.
      if (ours.length === 0) await recordName(client, clusterID, null, signal);
      throw new TributaryError('AlreadyExists', `${kind} ${name} is not of this peering, and has the name`);
    }
    try {
      await client.create(virtualNodes, draftVirtualNode(wanted), { signal });
    } catch (error) {
      if (!hasCode(error, 'AlreadyExists')) throw error;
      throw new TributaryError('Conflict', `VirtualNode ${name} exists by now`, { cause: error });
    }
  }

  /**
   * Those that no plan asks for any more. What runs there was agreed on, and a node that lends no more (cordoned, say)
   * still runs it: they take nothing new, and go when they are empty.
   */
  async #removeSurplus(work: Work, wanted: ReadonlySet<string>): Promise<number | undefined> {
    const { ours, clusterID, advertisement, signal } = work;
    const { caches, teardown } = this.#options;
    const waits: number[] = [];
    for (const one of ours.filter(({ metadata }) => !wanted.has(metadata.name))) {
      const wait = await teardown.vacate(one, signal);
      if (wait !== undefined) waits.push(wait);
      else await teardown.removeVirtualNode(one, signal);
    }
    for (const name of advertisement.status?.virtualNodes ?? []) {
      const isGone = caches.virtualNodes.get(name) === undefined;
      if (isGone && !wanted.has(name)) await teardown.removeNode(name, clusterID, signal);
    }
    return waits.length === 0 ? undefined : Math.min(...waits);
  }
}

const isReady = ({ status }: VirtualNode): boolean =>
  isConditionTrue(status?.conditions, VIRTUAL_NODE_CONDITIONS.ready);
