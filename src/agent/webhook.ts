/** The admission webhook, put together: what is decided, who is asked, and where API servers are told to ask. */
import { isClusterNamespace } from '../api/cluster-namespaces.ts';
import type { Registry } from 'prom-client';
import {
  WEBHOOK_CONFIGURATION,
  WEBHOOK_PATH,
  WEBHOOK_PORT,
  WEBHOOK_SERVICE,
  mutatingWebhookConfigurations,
  type Admission,
  type MutatingWebhook,
} from '../api/admission.ts';
import type { NamespaceOffloading, PodStrategy } from '../api/namespace-offloading.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { systemRandom } from '../lib/backoff.ts';
import type { Component } from '../lib/lifecycle.ts';
import { admit } from '../offloading/admission/decide.ts';
import type { SelectedNode } from '../offloading/admission/avoid.ts';
import { nodeLabelsOf } from '../api/node-labels.ts';
import type { WebhookSubject } from '../certificates/webhook/authority.ts';
import { WebhookCertificates } from '../certificates/webhook/certificates.ts';
import { forgeWebhooks } from '../offloading/admission/webhook-configuration.ts';
import type { Hook, Question } from '../server/webhook/hook.ts';
import { WebhookKeeper, type KeptConfiguration } from '../kube/webhook-keeper.ts';
import { WebhookMetrics } from '../server/webhook/metrics.ts';
import { WebhookServer } from '../server/webhook/server.ts';
import type { AgentParts } from './parts.ts';

/** How API servers come to one of our paths, and what they are to trust. */
export interface WebhookPlace {
  clientConfig: MutatingWebhook['clientConfig'];
  /** PEM. */
  bundle: string;
}

/** Questions that belong together, and the configurations by which they are asked. */
export interface HookPart {
  /** Before anybody asks. */
  components: Component[];
  hooks: readonly Hook[];
  configurations: (place: (path: string) => WebhookPlace) => KeptConfiguration[];
  /** Calls back after the configurations may have changed. */
  onChange: (listener: () => void) => () => void;
}

export interface WebhookOptions {
  parts: AgentParts;
  home: KubeClient;
  /** In effect now, from caches. */
  offloadings: Offloadings;
  /** Of the provider's side. */
  guests?: HookPart;

  /** Whether API servers come by the Service; else they dial --node-address, or this machine's loopback. */
  inPod: boolean;
  /** Of the process. */
  registry: Registry;
  metrics: ControllerMetrics;
}

interface Offloadings {
  offloadingOf(namespace: string): NamespaceOffloading | undefined;
  all(): NamespaceOffloading[];
  selectedBy(offloading: NamespaceOffloading): readonly VirtualNode[];
  onChange(listener: () => void): () => void;
}

/** For the leader; in the order of their start. `offloadings` must be filled by then. */
export function webhook(options: WebhookOptions): Component[] {
  const { parts, home, inPod, metrics, guests } = options;
  const { clock, config } = parts;
  const log = parts.log.named('webhook');
  const { systemNamespace } = config;
  const common = { client: home, clock, log };
  const counters = new WebhookMetrics(options.registry);
  const address = config.nodeAddress ?? '127.0.0.1';
  const certificates = new WebhookCertificates({
    ...common,
    namespace: systemNamespace,
    subject: inPod ? subjectOf(systemNamespace) : { dnsNames: [], ips: [address] },
    random: systemRandom,
    metrics: counters,
  });
  const hookParts = [homePart(options), ...(guests === undefined ? [] : [guests])];
  const server = new WebhookServer({
    clock,
    log,
    port: config.webhookPort ?? (inPod ? WEBHOOK_PORT : 0),
    certificate: certificates,
    hooks: hookParts.flatMap(({ hooks }) => hooks),
    metrics: counters,
  });
  const place = (path: string): WebhookPlace => ({
    clientConfig: inPod ? serviceOf(systemNamespace, path) : urlOf(address, server.port ?? 0, path),
    bundle: certificates.bundle(),
  });
  const keepers = hookParts.flatMap(({ configurations, onChange }) =>
    configurations(place).map(
      (configuration) =>
        new WebhookKeeper({
          ...common,
          metrics,
          systemNamespace,
          configuration,
          onChange: (listener) => {
            const ends = [onChange(listener), certificates.subscribe(listener)];
            return () => ends.forEach((end) => end());
          },
        }),
    ),
  );
  return [
    ...hookParts.flatMap(({ components }) => components),
    certificates,
    server,
    ...keepers.flatMap((keeper) => keeper.components()),
  ];
}

/** Pods of offloaded namespaces. */
function homePart({ parts, offloadings }: WebhookOptions): HookPart {
  const { clock, config } = parts;
  const decide = ({ pod, namespace, about }: Question): Admission => {
    if (about !== 'Create') return { patch: [], warnings: [] };
    const offloading = offloadings.offloadingOf(namespace);
    const selected = offloading === undefined ? [] : offloadings.selectedBy(offloading);
    const failedNodes = failedNodesOf(offloading, selected);
    return admit(pod, { offloading, failedNodes, selected: selected.map(placeOf), nowMs: clock.now() });
  };
  return {
    components: [],
    hooks: [{ path: WEBHOOK_PATH, decide }],
    configurations: (place) => [
      {
        type: mutatingWebhookConfigurations,
        name: WEBHOOK_CONFIGURATION,
        wanted: () =>
          forgeWebhooks({
            namespaces: byStrategy(offloadings.all(), config.systemNamespace),
            ...place(WEBHOOK_PATH),
          }),
      },
    ],
    onChange: (listener) => offloadings.onChange(listener),
  };
}

const placeOf = (virtualNode: VirtualNode): SelectedNode => ({
  name: virtualNode.metadata.name,
  labels: nodeLabelsOf(virtualNode),
});

/** As an API server calls a Service: `<name>.<namespace>.svc`. */
const subjectOf = (namespace: string): WebhookSubject => ({
  dnsNames: [`${WEBHOOK_SERVICE}.${namespace}.svc`],
  ips: [],
});

const serviceOf = (namespace: string, path: string): MutatingWebhook['clientConfig'] => ({
  service: { namespace, name: WEBHOOK_SERVICE, path, port: 443 },
});

const urlOf = (address: string, port: number, path: string): MutatingWebhook['clientConfig'] => ({
  url: `https://${address.includes(':') ? `[${address}]` : address}:${port}${path}`,
});

/**
 * Pure. What is being removed takes no new pods abroad. The cluster's own parts are never held up: they could not bring
 * back the one whose answer they wait for.
 */
export function byStrategy(
  offloadings: readonly NamespaceOffloading[],
  systemNamespace: string,
): Record<PodStrategy, string[]> {
  const found: Record<PodStrategy, string[]> = { Local: [], LocalAndRemote: [], Remote: [] };
  for (const { metadata, spec } of offloadings) {
    const { namespace = '', deletionTimestamp } = metadata;
    const isSystem = isClusterNamespace(namespace, systemNamespace);
    if (deletionTimestamp !== undefined || isSystem || namespace === '') continue;
    found[spec.podStrategy ?? 'LocalAndRemote'].push(namespace);
  }
  return found;
}

/** Pure: virtual nodes that have failed to take the namespace, or are about to lose it. */
export function failedNodesOf(
  offloading: NamespaceOffloading | undefined,
  selected: readonly VirtualNode[],
): string[] {
  const names = new Set(selected.map(({ metadata }) => metadata.name));
  return (offloading?.status?.clusters ?? []).flatMap(({ phase, virtualNodes }) =>
    phase === 'Failed' || phase === 'Ending' ? virtualNodes : virtualNodes.filter((name) => !names.has(name)),
  );
}
