import { ANNOUNCEMENT_CONFIG_MAP, announcementData, type OwnAnnouncement } from '../api/own-announcement.ts';
import { APP_NAME, LABEL_APP_NAME } from '../api/manifest.ts';
import { applyManifests } from '../kube/apply.ts';
import type { KubeClient } from '../kube/client.ts';
import { Backoff, systemRandom } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';

export interface AnnouncementOptions {
  client: KubeClient;
  namespace: string;
  /** Asked at the start. */
  own: () => OwnAnnouncement;
  clock: Clock;
  log: Logger;
}

const RETRY_MS = { baseMs: 1000, capMs: 30_000 };
/** Between two writes. The API server takes no notice of one that changes nothing. */
const REFRESH_MS = 60_000;

/** Writes down who we are and where we listen, for the role that announces it and for people; again if it is lost. */
export class AnnouncementWriter implements Component {
  readonly name = 'own announcement';
  readonly #options: AnnouncementOptions;
  readonly #abort = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: AnnouncementOptions) {
    this.#options = options;
  }

  /** Does not wait: nothing here depends on it. */
  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#running = this.#write(this.#abort.signal);
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, namespace, own, clock, log } = this.#options;
    const manifest = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: ANNOUNCEMENT_CONFIG_MAP, namespace, labels: { [LABEL_APP_NAME]: APP_NAME } },
      data: announcementData(own()),
    };
    const backoff = new Backoff({ ...RETRY_MS, random: systemRandom });
    while (!signal.aborted) {
      try {
        await applyManifests(client, [manifest], { signal });
        backoff.reset();
        await clock.sleep(REFRESH_MS, signal).catch(() => undefined);
      } catch (error) {
        if (signal.aborted) return;
        log.warn('cannot write the own announcement', { error: errorMessage(error) });
        await clock.sleep(500 + backoff.next(), signal).catch(() => undefined);
      }
    }
  }
}
