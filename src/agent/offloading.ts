/** Offloading and the admission webhook, put together: what is decided, who is asked, and where API servers are told to ask. */
import type { Registry } from 'prom-client';

import { type MutatingWebhook, WEBHOOK_PORT, WEBHOOK_SERVICE } from '../api/admission.ts';
import type { Forwarding } from '../api/cluster-mode.ts';
import type { WebhookSubject } from '../certificates/webhook/authority.ts';
import { WebhookCertificates } from '../certificates/webhook/webhook-certificates.ts';
import type { AgentConfig } from '../config.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import {
  type AdmissionPart,
  WebhookConfigurationController,
  type WebhookPlace,
} from '../kube/webhook-configuration.ts';
import { systemRandom } from '../lib/backoff.ts';
import type { Component } from '../lib/lifecycle.ts';
import { together } from '../lib/listeners.ts';
import { offloadingAdmission } from '../offloading/admission/webhook.ts';
import { AdmittedPods } from '../offloading/admitted/admitted-pods.ts';
import { AwayPods } from '../offloading/away/away-pods.ts';
import { Offloading } from '../offloading/offloading.ts';
import type { SelectedNamespaces } from '../offloading/short-form.ts';
import type { PeerNamespaces } from '../offloading/view.ts';
import { Release } from '../offloading/release/release.ts';
import { Remake } from '../offloading/release/remake.ts';
import { WebhookMetrics } from '../server/webhook/metrics.ts';
import { WebhookServer } from '../server/webhook/server.ts';
import type { AgentParts } from './parts.ts';

interface OffloadingPartsOptions extends WebhookOptions {
  caches: Caches;
  events: EventRecorder;
  /** What the mode of this cluster means for pods of users, now. Default: nothing. */
  tether?: () => Forwarding | undefined;
  /** Further questions of API servers, at the same listener. */
  guests?: AdmissionPart;
  /** Asked when components run; borrowing may be constructed after this. */
  peerNamespaces: PeerNamespaces;
  /** See AwayPods; its own default. */
  awaySettleMs?: number;
}

/** What offloads namespaces to other clusters: the controller, the webhook, and the release of pods that find no place. */
export class OffloadingParts {
  /** Which namespaces go to which provider; for borrowing. */
  readonly offloading: Offloading;
  readonly #options: OffloadingPartsOptions;
  readonly #selected: SelectedNamespaces | undefined;
  readonly #remake: Remake;
  readonly #release: Release;
  readonly #admitted: AdmittedPods;
  readonly #away: AwayPods;

  constructor(options: OffloadingPartsOptions) {
    this.#options = options;
    const { parts, home: client, caches, events, metrics, peerNamespaces, tether } = options;
    const settle = options.awaySettleMs === undefined ? {} : { settleMs: options.awaySettleMs };
    const { clock, log, config } = parts;
    const { systemNamespace, drainSeconds } = config;
    const selected = (this.#selected = selectedBy(config));
    const common = { client, caches, clock, log, metrics, events };
    const namespaceUid = (name: string): string | undefined => this.offloading.namespaceUid(name);
    const remake = (this.#remake = new Remake({ ...common, systemNamespace, namespaceUid }));
    this.offloading = new Offloading({
      ...common,
      ownSystemNamespace: systemNamespace,
      ...(selected && { selected }),
      peerNamespaces,
      ...(tether && { tether }),
      remake,
      budgetsForMs: drainSeconds * 1000,
    });
    this.#admitted = new AdmittedPods(common);
    this.#away = new AwayPods({ ...common, ...settle, offloadings: this.offloading });
    this.#release = new Release({ ...common, offloadings: this.offloading, systemNamespace, remake });
  }

  /** They start before everything that asks which namespaces are offloaded. */
  caches(): Component[] {
    return this.offloading.caches();
  }

  /** They start when the caches are filled. The webhook is first: what the others delete is created again through it. */
  actors(): Component[] {
    const { parts, guests } = this.#options;
    const { clock, config } = parts;
    const { systemNamespace } = config;
    const selected = this.#selected;
    const home = offloadingAdmission(this.offloading, {
      clock,
      systemNamespace,
      selected,
      admitted: this.#admitted,
    });
    return [
      ...webhook(guests === undefined ? [home] : [home, guests], this.#options),
      ...this.#remake.components(),
      ...this.#release.components(),
      ...this.#away.components(),
      this.#admitted.component(),
      ...this.offloading.actors(),
    ];
  }
}

const selectedBy = ({
  offloadNamespaces: selector,
  offloadStrategy: podStrategy,
}: AgentConfig): SelectedNamespaces | undefined => selector && { selector, podStrategy };

interface WebhookOptions {
  parts: AgentParts;
  home: KubeClient;
  metrics: ControllerMetrics;
  /** Of the process. */
  registry: Registry;
  /** Whether API servers come by the Service; else they dial --node-address, or this machine's loopback. */
  inPod: boolean;
}

/** For the leader; in the order of their start. What the parts answer from must be filled by then. */
export function webhook(admission: readonly AdmissionPart[], options: WebhookOptions): Component[] {
  const { parts, home, inPod, metrics } = options;
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
  const server = new WebhookServer({
    clock,
    log,
    port: config.webhookPort ?? (inPod ? WEBHOOK_PORT : 0),
    certificate: certificates,
    hooks: admission.flatMap(({ hooks }) => hooks),
    metrics: counters,
  });
  const place = (path: string): WebhookPlace => ({
    clientConfig: inPod ? serviceOf(systemNamespace, path) : urlOf(address, server.port ?? 0, path),
    bundle: certificates.bundle(),
  });
  const kept = admission.flatMap(({ configurations, onChange }) =>
    configurations(place).map(
      (configuration) =>
        new WebhookConfigurationController({
          ...common,
          metrics,
          systemNamespace,
          configuration,
          onChange: (listener) => together(onChange(listener), certificates.subscribe(listener)),
        }),
    ),
  );
  return [
    ...admission.flatMap(({ components }) => components),
    certificates,
    server,
    ...kept.flatMap((configuration) => configuration.components()),
  ];
}

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
