import type { Registry } from 'prom-client';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Offloading } from '../offloading/offloading.ts';
import type { PeerNamespaces } from '../offloading/view.ts';
import { Release } from '../offloading/release/release.ts';
import { Remake } from '../offloading/release/remake.ts';
import type { AgentParts } from './parts.ts';
import { webhook, type HookPart } from './webhook.ts';

export interface NamespaceStretchOptions {
  parts: AgentParts;
  home: KubeClient;
  caches: Caches;
  events: EventRecorder;
  metrics: ControllerMetrics;
  /** Of the process. */
  registry: Registry;
  /** Whether API servers come by our Service. */
  inPod: boolean;
  /** What else API servers ask, at the same listener. */
  guests?: HookPart;
  /** Borrowing, which may be made after this. */
  peerNamespaces: PeerNamespaces;
}

/** What stretches namespaces over clusters: the controller, the webhook, and the release of pods that find no place. */
export class NamespaceStretch {
  /** Which namespaces go to which provider; for borrowing. */
  readonly offloading: Offloading;
  readonly #options: NamespaceStretchOptions;
  readonly #remake: Remake;
  readonly #release: Release;

  constructor(options: NamespaceStretchOptions) {
    this.#options = options;
    const { parts, home: client, caches, events, metrics, peerNamespaces } = options;
    const { clock, log, config } = parts;
    const { systemNamespace, offloadNamespaces: selector, drainSeconds } = config;
    const common = { client, caches, clock, log, metrics, events };
    const namespaceUid = (name: string): string | undefined => this.offloading.namespaceUid(name);
    const remake = (this.#remake = new Remake({ ...common, systemNamespace, namespaceUid }));
    this.offloading = new Offloading({
      ...common,
      ownSystemNamespace: systemNamespace,
      ...(selector !== undefined && { selector }),
      peerNamespaces,
      remake,
      budgetsForMs: drainSeconds * 1000,
    });
    this.#release = new Release({ ...common, offloadings: this.offloading, systemNamespace, remake });
  }

  /** Before whatever asks which namespaces are offloaded. */
  caches(): Component[] {
    return this.offloading.caches();
  }

  /** When the caches are filled. The webhook first: what the others delete is made anew through it. */
  actors(): Component[] {
    return [
      ...webhook({ ...this.#options, offloadings: this.offloading }),
      ...this.#remake.components(),
      ...this.#release.components(),
      ...this.offloading.actors(),
    ];
  }
}
