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
import { TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { type VirtualNodePlan, virtualNodePlans } from '../offer/virtual-node-plans.ts';
import type { BorrowingCaches } from './caches.ts';
import type { ActiveProvider } from './facts.ts';
import {
  asConflict,
  clusterLabel,
  holderOf,
  ingressClassesOf,
  nodeNameOf,
  offeredStorageClassesOf,
  priorityClassesOf,
  recordName,
  storageClassesOf,
} from './names.ts';
import { mappingsOf, usedNamespaces } from './namespaces.ts';
import { secretName } from './secret.ts';
import type { NodesState } from './status.ts';
import type { Teardown } from './teardown.ts';
import { type DesiredVirtualNode, draftVirtualNode, isOf, updatedVirtualNode } from './virtual-node.ts';

interface NodeSetupOptions {
  client: KubeClient;
  caches: BorrowingCaches;
  teardown: Teardown;
  systemNamespace: string;
  homeApiServer?: HomeApiServer;
}

/** The form that the kind VirtualNode takes. A feature of another form is left out, so that the rest is written. */
const FEATURE = /^[A-Z][A-Za-z0-9]*(\/[A-Z][A-Za-z0-9]*)*$/u;

/** Why a node that no plan asks for any more takes no new pods. */
const SURPLUS =
  'the provider lends this node no more (it is cordoned there, say), or shape or maxNodes of the AcceptancePolicy leave it out';

type NamedPlan = VirtualNodePlan & { name: string };

/** Makes the VirtualNodes of one provider: as many and as large as was agreed on. */
export class NodeSetup {
  readonly #options: NodeSetupOptions;

  constructor(options: NodeSetupOptions) {
    this.#options = options;
  }

  /** Undefined while a newer contract waits for the provider: then nothing is changed. */
  plans({ step, facts, advertisement }: ActiveProvider): NamedPlan[] | undefined {
    const base = advertisement.metadata.annotations?.[ANNOTATION_NODE_NAME];
    if (step.terms === undefined || base === undefined) return undefined;
    const { shape, maxNodes } = facts.intent.policy?.spec ?? {};
    const plans = virtualNodePlans(advertisement.spec.offer, step.terms.resources, shape, maxNodes);
    return plans.map((plan) => ({ ...plan, name: nodeNameOf(base, plan.suffix) }));
  }

  /** Makes them as planned. Returns the milliseconds after which to look again at those that go. */
  async apply(provider: ActiveProvider, plans: readonly NamedPlan[]): Promise<number | undefined> {
    for (const plan of plans) await this.#applyOne(provider, plan);
    return this.#removeSurplus(provider, new Set(plans.map(({ name }) => name)));
  }

  state({ clusterID }: ActiveProvider, wanted: readonly string[]): NodesState {
    const { virtualNodes: cache } = this.#options.caches;
    const found = wanted.flatMap((name) => cache.get(name) ?? []).filter((node) => isOf(node, clusterID));
    const notReady = found.find((node) => !isReady(node));
    const why = notReady?.status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready);
    const shown =
      notReady === undefined
        ? ''
        : `; ${notReady.metadata.name}: ${why?.message ?? 'no agent has spoken yet'}`;
    return {
      complete: wanted.length > 0 && found.length === wanted.length,
      ready: found.filter(isReady).length,
      message: `${found.filter(isReady).length} of ${wanted.length} ready${shown}`,
    };
  }

  async #applyOne(provider: ActiveProvider, plan: NamedPlan): Promise<void> {
    const { client, caches } = this.#options;
    const { clusterID, signal } = provider;
    const wanted = this.#wanted(provider, plan);
    const current = caches.virtualNodes.get(plan.name);
    if (current === undefined || !isOf(current, clusterID)) {
      await this.#create(provider, wanted);
    } else if (current.metadata.deletionTimestamp === undefined) {
      const desired = updatedVirtualNode(current, wanted);
      await replaceIfDiffers(client, virtualNodes, current, { desired, signal });
    }
  }

  #wanted({ clusterID, step, facts, advertisement }: ActiveProvider, plan: NamedPlan): DesiredVirtualNode {
    const { systemNamespace, homeApiServer } = this.#options;
    const { intent, desired } = facts;
    const { clusterName, offer } = advertisement.spec;
    const base = advertisement.metadata.annotations?.[ANNOTATION_NODE_NAME];
    const { policy } = intent;
    const { nodeLabels, ingressClasses, storageClasses } = policy?.spec ?? {};
    // Without a policy it is for people to say in the VirtualNode.
    const taintEffect = policy === undefined ? undefined : (policy.spec.taintEffect ?? 'NoSchedule');
    const podAdditions = policy === undefined ? undefined : (policy.spec.podAdditions ?? {});
    const { name, resources, nodeSizes, labels, declaredFeatures } = plan;
    return {
      name,
      provider: clusterID,
      kubeconfigSecretRef: { namespace: systemNamespace, name: secretName(clusterID) },
      resources,
      ...present({ nodeSizes, prices: step.terms?.prices }),
      labels: { ...labels, [LABEL_CLUSTER]: clusterLabel(clusterName, clusterID, base), ...nodeLabels },
      namespaces: mappingsOf(usedNamespaces(step.terms?.namespaces ?? [], desired), desired),
      ingressClasses: ingressClassesOf(ingressClasses, offer.classes.ingress),
      storageClasses: storageClassesOf(storageClasses),
      offeredStorageClasses: offeredStorageClassesOf(offer.classes.storage),
      priorityClasses: priorityClassesOf(offer.classes.priority),
      device: intent.tie === 'Device',
      closed: step.closed,
      ...present({ homeApiServer, taintEffect, podAdditions, sharingPolicy: facts.received.grant?.policy }),
      ...(declaredFeatures && { declaredFeatures: declaredFeatures.filter((name) => FEATURE.test(name)) }),
    };
  }

  async #create({ clusterID, ours, signal }: ActiveProvider, wanted: DesiredVirtualNode): Promise<void> {
    const { client } = this.#options;
    const { name } = wanted;
    const kind = await holderOf(this.#options, { name, clusterID }, signal);
    if (kind !== undefined) {
      // No pod is bound to the name yet: another one can be chosen.
      if (ours.length === 0) await recordName(client, clusterID, null, signal);
      throw new TributaryError(
        'AlreadyExists',
        `${kind} ${name} does not belong to this peering, and has the name`,
      );
    }
    const draft = draftVirtualNode(wanted);
    await client.create(virtualNodes, draft, { signal }).catch(asConflict(`VirtualNode ${name}`));
  }

  /**
   * Removes those that no plan asks for any more. What runs there was agreed on, and a node that lends no more (one that
   * is cordoned, say) still runs it: so they take nothing new, and are removed when they are empty.
   */
  async #removeSurplus(provider: ActiveProvider, wanted: ReadonlySet<string>): Promise<number | undefined> {
    const { ours, clusterID, advertisement, signal } = provider;
    const { caches, teardown } = this.#options;
    const waits: number[] = [];
    for (const one of ours.filter(({ metadata }) => !wanted.has(metadata.name))) {
      const wait = await teardown.vacate(one, SURPLUS, signal);
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
