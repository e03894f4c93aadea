import { AGENT_NAME_PREFIX, AGENTS_NAMESPACE, PEERS_NAME } from '../api/manifest.ts';
import { AGENT_OF_ALL, LABEL_AGENT, LABEL_PROVIDER } from '../api/names.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import { certificateSigningRequests, pods } from '../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { CertificateSigningRequest, Pod } from '../api/wire.ts';
import type { ClusterBasics } from '../kube/client.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import { Backoff, type Random, systemRandom } from '../lib/backoff.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import {
  type CsrDecision,
  decideCsr,
  EXTRA_POD_NAME,
  EXTRA_POD_UID,
  type RequestingPod,
  type ServedNode,
} from './csr-policy.ts';
import { KUBELET_SERVING_SIGNER, parseSigningRequest, settleRequest } from './signing-request.ts';

interface ServingApproverOptions extends ClusterBasics {
  random: Random;
  virtualNodes: () => readonly ServedNode[];
  /** The pod that a service account's credential is bound to. */
  podOf: (username: string, extra: Record<string, string[]>) => RequestingPod | undefined;
}

/** A request may be older than the VirtualNode or pod it belongs to; so often all of them are looked at again. */
const RELIST_SECONDS = 60;
const RETRY = { baseMs: 1_000, capMs: 60_000 };
const MIN_RETRY_MS = 200;

/** Approves the serving certificates of agents, and denies them what is not theirs (see csr-policy.ts). */
export class ServingApprover implements Component {
  readonly name = 'serving certificate approver';
  readonly #options: ServingApproverOptions;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;

  constructor(options: ServingApproverOptions) {
    this.#options = options;
  }

  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#background.run(async (signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#options;
    const backoff = new Backoff({ ...RETRY, random });
    while (!signal.aborted) {
      try {
        await this.#follow(signal, () => backoff.reset());
        await clock.sleep(MIN_RETRY_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!hasCode(error, 'Expired')) {
          log.warn('cannot follow certificate requests', { error: errorMessage(error) });
        }
        await clock.sleep(MIN_RETRY_MS + backoff.next(), signal).catch(() => undefined);
      }
    }
  }

  /** All requests, then those that come, until the server ends the watch. */
  async #follow(signal: AbortSignal, listed: () => void): Promise<void> {
    const { client } = this.#options;
    const fieldSelector = `spec.signerName=${KUBELET_SERVING_SIGNER}`;
    const { items, resourceVersion } = await client.list(certificateSigningRequests, {
      fieldSelector,
      signal,
    });
    listed();
    for (const csr of items) await this.#settle(csr, signal);
    const events = client.watch(certificateSigningRequests, {
      fieldSelector,
      resourceVersion,
      timeoutSeconds: RELIST_SECONDS,
      signal,
    });
    for await (const event of events) {
      if (event.type === 'ADDED' || event.type === 'MODIFIED') await this.#settle(event.object, signal);
    }
  }

  /** A failure concerns one request only; the next list brings it back. */
  async #settle(csr: CertificateSigningRequest, signal: AbortSignal): Promise<void> {
    const { log, virtualNodes, podOf } = this.#options;
    const { username = '', extra = {} } = csr.spec;
    const pod = podOf(username, extra);
    const decision = await decideCsr({ csr, parse: parseSigningRequest, nodes: virtualNodes(), pod });
    const fields = { csr: csr.metadata.name, user: username, reason: decision.reason };
    if (decision.action === 'ignore') return log.debug('certificate request ignored', fields);
    try {
      await this.#write(csr, decision, signal);
      if (decision.action === 'approve') log.info('certificate request approved', fields);
      else log.warn('certificate request denied', fields);
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn('cannot settle a certificate request', { ...fields, error: errorMessage(error) });
    }
  }

  async #write(csr: CertificateSigningRequest, decision: CsrDecision, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const type = decision.action === 'approve' ? 'Approved' : 'Denied';
    await settleRequest(client, csr, { type, message: decision.reason, nowMs: clock.now() }, signal);
  }
}

interface AgentApproverOptions extends Pick<ServingApproverOptions, 'client' | 'clock' | 'log'> {
  caches: Caches;
  systemNamespace: string;
}

/** Gives agents the serving certificates of their kubelet APIs. */
export class AgentApprover {
  readonly #nodes: Cache<VirtualNode>;
  /** Agents that people have set up, and those that this role starts. */
  readonly #agents: readonly Cache<Pod>[];
  readonly #approver: ServingApprover;

  constructor({ caches, systemNamespace, ...common }: AgentApproverOptions) {
    this.#nodes = caches.of(virtualNodes);
    this.#agents = [systemNamespace, AGENTS_NAMESPACE].map((namespace) =>
      caches.of(pods, { list: { namespace } }),
    );
    this.#approver = new ServingApprover({
      ...common,
      log: common.log.named('approver'),
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
    const name = extra[EXTRA_POD_NAME]?.[0];
    const uid = extra[EXTRA_POD_UID]?.[0];
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

/**
 * A virtual node that was made from an offer is served by the agent of its provider, or by the one of all if it is labelled so; any other
 * by an agent of its own name.
 */
export function servedNode(node: VirtualNode, systemNamespace: string): ServedNode {
  const { [LABEL_PROVIDER]: provider, [LABEL_AGENT]: agent } = node.metadata.labels ?? {};
  const own = `${AGENT_NAME_PREFIX}${provider ?? node.metadata.name}`;
  const account =
    provider === undefined
      ? `${systemNamespace}:${own}`
      : `${AGENTS_NAMESPACE}:${agent === AGENT_OF_ALL ? PEERS_NAME : own}`;
  return { nodeName: nodeNameOf(node), username: `system:serviceaccount:${account}` };
}
