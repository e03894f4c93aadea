import { AGENT_NAME_PREFIX } from '../api/manifest.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import { pods } from '../api/resources.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { systemRandom } from '../lib/backoff.ts';
import type { Component } from '../lib/lifecycle.ts';
import { AGENTS_NAMESPACE } from '../deploy/manifests-agents.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import type { RequestingPod, ServedNode } from '../certificates/csr-policy.ts';
import { ServingApprover } from '../certificates/serving-approver.ts';
import type { AgentParts } from './parts.ts';

/** Gives agents the serving certificates of their kubelet APIs. */
export class AgentApprover {
  readonly #nodes: Cache<VirtualNode>;
  /** Agents that people have set up, and those that this role starts. */
  readonly #agents: readonly Cache<Pod>[];
  readonly #approver: ServingApprover;

  constructor({ clock, log, config }: AgentParts, home: KubeClient, caches: Caches) {
    const { systemNamespace } = config;
    const common = { client: home, clock, log };
    this.#nodes = caches.of(virtualNodes);
    this.#agents = [systemNamespace, AGENTS_NAMESPACE].map((namespace) =>
      caches.of(pods, { list: { namespace } }),
    );
    this.#approver = new ServingApprover({
      ...common,
      log: log.named('approver'),
      random: systemRandom,
      virtualNodes: () => [...this.#nodes.list()].map((node) => servedNode(node, systemNamespace)),
      podOf: (username, extra) => this.#requestingPod(username, extra),
    });
  }

  /** What has to be there before there is a leader. */
  caches(): Component[] {
    return [this.#nodes, ...this.#agents];
  }

  /** What only the leader does. */
  actors(): Component[] {
    return [this.#approver];
  }

  /** The pod that a bound service-account token names (KEP-4193), only if it is still the one of that UID. */
  #requestingPod(username: string, extra: Record<string, string[]>): RequestingPod | undefined {
    const namespace = username.split(':')[2] ?? '';
    const name = extra['authentication.kubernetes.io/pod-name']?.[0];
    const uid = extra['authentication.kubernetes.io/pod-uid']?.[0];
    const found = this.#agents.flatMap((agents) => agents.get(`${namespace}/${name}`) ?? []);
    const pod = found.find(({ metadata }) => metadata.uid === uid);
    if (pod === undefined) return undefined;
    return {
      name: pod.metadata.name,
      uid: pod.metadata.uid,
      ips: (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip])),
    };
  }
}

/** One made from an offer is served by the provider's agent, any other by one of its own name. */
export function servedNode(node: VirtualNode, systemNamespace: string): ServedNode {
  const provider = node.metadata.labels?.[LABEL_PROVIDER];
  const account =
    provider === undefined
      ? `${systemNamespace}:${AGENT_NAME_PREFIX}${node.metadata.name}`
      : `${AGENTS_NAMESPACE}:${AGENT_NAME_PREFIX}${provider}`;
  return { nodeName: nodeNameOf(node), username: `system:serviceaccount:${account}` };
}
