import { WAITING_FOR_NODE } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { aboutPod } from '../../kube/events.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { remember } from '../../lib/remember.ts';
import type { OffloadingParts } from '../release/remake.ts';
import { newsOfAdmitted } from './decide.ts';

/** Of which pods there is something to tell: of those that wait for a node, or of any. */
export type AdmittedKind = 'waiting' | 'any';

/** What a namespace is looked at for; monotonic milliseconds. */
interface Look {
  kind: AdmittedKind;
  nextMs: number;
  lastMs: number;
  /** After this every pod that was let in is stored. */
  untilMs: number;
}

/** A pod is stored, and looked at by the scheduler, after it was let in. */
const FIRST_MS = 2_000;
const AGAIN_MS = 5_000;
const SETTLE_MS = 15_000;
/** Each event is a write, and so many of them in one look are enough to be noticed. */
const MAX_NOTICES = 100;
const MAX_TOLD = 4096;
const PAGE = 500;

/**
 * Tells on a pod what its maker has not seen: the webhook's warnings reach whoever makes the pod, and of most pods that is a
 * controller. The pod has no UID yet when the webhook is asked, so its namespace is listed a moment later; nothing is watched.
 */
export class AdmittedPods {
  readonly #options: OffloadingParts;
  readonly #controller: Controller;
  /** By namespace. */
  readonly #looks = new Map<string, Look>();
  /** UID and reason of what was told. */
  readonly #told = new Map<string, true>();

  constructor(options: OffloadingParts) {
    const { clock, log, metrics } = options;
    this.#options = options;
    this.#controller = new Controller({
      name: 'admitted-pods',
      concurrency: 1,
      reconcile: async (namespace, { signal }) => this.#reconcile(namespace, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  component(): Component {
    return this.#controller;
  }

  /** The webhook has let in such a pod. */
  letIn(namespace: string, kind: AdmittedKind): void {
    const nowMs = this.#options.clock.monotonic();
    const known = this.#looks.get(namespace);
    const { lastMs = -Infinity } = known ?? {};
    this.#looks.set(namespace, {
      kind: kind === 'any' ? kind : (known?.kind ?? kind),
      nextMs: Math.min(known?.nextMs ?? Infinity, Math.max(nowMs + FIRST_MS, lastMs + AGAIN_MS)),
      lastMs,
      untilMs: nowMs + SETTLE_MS,
    });
    this.#controller.add(namespace);
  }

  async #reconcile(namespace: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock } = this.#options;
    const look = this.#looks.get(namespace);
    if (look === undefined) return {};
    const nowMs = clock.monotonic();
    if (nowMs < look.nextMs) return { requeueAfterMs: look.nextMs - nowMs };
    const isOpen = await this.#look(namespace, look.kind, signal);
    // Another pod may have been let in meanwhile.
    const latest = this.#looks.get(namespace) ?? look;
    if (latest.untilMs <= nowMs) {
      this.#looks.delete(namespace);
      return {};
    }
    const isSoon = isOpen || latest !== look;
    const nextMs = isSoon ? Math.min(nowMs + AGAIN_MS, latest.untilMs) : latest.untilMs;
    this.#looks.set(namespace, { ...latest, nextMs, lastMs: nowMs });
    return { requeueAfterMs: Math.max(1, nextMs - clock.monotonic()) };
  }

  /** Returns whether there may be more to tell of the same pods. */
  async #look(namespace: string, kind: AdmittedKind, signal: AbortSignal): Promise<boolean> {
    const fieldSelector = kind === 'waiting' ? WAITING_FOR_NODE : undefined;
    const list = { namespace, limit: PAGE, signal, ...(fieldSelector !== undefined && { fieldSelector }) };
    let isOpen = false;
    let left = MAX_NOTICES;
    for await (const { items } of this.#options.client.pages(pods, list)) {
      const found = items.map((pod) => ({ pod, ...newsOfAdmitted(pod) }));
      isOpen ||= found.some((one) => one.isOpen);
      const news = found.flatMap(({ pod, news: all }) => all.map((one) => ({ pod, ...one })));
      for (const { pod, reason, message } of news) {
        if (this.#isNew(pod, reason) && left-- > 0)
          this.#options.events.event(aboutPod(pod), 'Warning', reason, message);
      }
    }
    return isOpen;
  }

  #isNew({ metadata }: Pod, reason: string): boolean {
    const key = `${metadata.uid} ${reason}`;
    const isNew = !this.#told.has(key);
    remember(this.#told, key, true, MAX_TOLD);
    return isNew;
  }
}
