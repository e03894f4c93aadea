import { isIP } from 'node:net';

import { APP_NAME, LABEL_APP_NAME } from '../api/manifest.ts';
import {
  ANNOUNCEMENT_CONFIG_MAP,
  announcementData,
  type OwnAnnouncement,
  readAnnouncementData,
} from '../api/own-announcement.ts';
import type { ConfigMap } from '../api/wire.ts';
import { applyManifests } from '../kube/apply.ts';
import type { Cache } from '../kube/cache.ts';
import type { ClusterBasics } from '../kube/client.ts';
import { Backoff, systemRandom } from '../lib/backoff.ts';
import { splitEndpoint } from '../lib/endpoint.ts';
import { errorMessage } from '../lib/errors.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { LanSource } from './lan/lan-source.ts';
import type { Announcement } from './candidates.ts';

interface AnnouncementOptions extends ClusterBasics {
  namespace: string;
  /** Asked at the start. */
  own: () => OwnAnnouncement;
}

const RETRY_MS = { baseMs: 1000, capMs: 30_000 };
/** The time between two writes. A write that changes nothing costs the API server little. */
const REFRESH_MS = 60_000;

/** Writes down who we are and where we listen, for the role that announces it and for people; again if it is lost. */
export class AnnouncementWriter implements Component {
  readonly name = 'own announcement';
  readonly #options: AnnouncementOptions;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;

  constructor(options: AnnouncementOptions) {
    this.#options = options;
  }

  /** Does not wait for the write, since nothing here depends on it. */
  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#background.run(async (signal) => this.#write(signal));
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

interface AnnouncerParts {
  announcements: Pick<Cache<ConfigMap>, 'get' | 'onChange'>;
  key: string;
  source: Pick<LanSource, 'announce'>;
  log: Logger;
}

/** Says on the LAN what the ConfigMap says. One that is gone or makes no sense takes the announcement back. */
export function announcer({ announcements, key, source, log }: AnnouncerParts): Component {
  let unsubscribe = (): void => undefined;
  const announce = async (): Promise<void> => {
    const data = announcements.get(key)?.data;
    const own = readAnnouncementData(data);
    if (data !== undefined && own === undefined)
      log.warn('the announcement makes no sense', { configMap: key });
    const said = own && lanAnnouncement(own);
    try {
      await source.announce(said?.announcement, said?.hosts);
    } catch (error) {
      log.warn('the announcement cannot be made', { configMap: key, error: errorMessage(error) });
    }
  };
  return {
    name: 'LAN announcement',
    start: async () => {
      unsubscribe = announcements.onChange(() => void announce());
      await announce();
    },
    stop: () => unsubscribe(),
  };
}

/** What to say of ourselves on the LAN. */
interface OwnLanAnnouncement {
  announcement: Announcement;
  /** IP addresses to be dialled; none: those of the host that announces. */
  hosts: string[];
}

/**
 * From what this cluster says of itself to what is said on the LAN: a DNS-SD instance has one port, and its host has
 * IP addresses. So the first endpoint with an IP address tells the port, and all with that port are announced.
 * Endpoints by name are for peers that find us otherwise; where there is nothing else, it is this host's addresses and
 * the port of the peering endpoint.
 */
export function lanAnnouncement(own: OwnAnnouncement): OwnLanAnnouncement {
  const { clusterID, clusterName, protocols } = own;
  const byAddress = own.endpoints
    .flatMap((endpoint) => splitEndpoint(endpoint) ?? [])
    .filter(({ host }) => isIP(host) !== 0);
  const port = byAddress[0]?.port ?? own.port;
  return {
    announcement: { clusterID, clusterName, port, protocols },
    hosts: byAddress.filter((endpoint) => endpoint.port === port).map(({ host }) => host),
  };
}
