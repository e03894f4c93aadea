import { foreignClusters } from '../api/foreign-cluster.ts';
import { ANNOUNCEMENT_CONFIG_MAP, readAnnouncementData } from '../api/own-announcement.ts';
import { configMaps } from '../api/resources.ts';
import type { ConfigMap } from '../api/wire.ts';
import { LanSource } from '../discovery/lan/lan-source.ts';
import { lanAnnouncement } from '../discovery/self.ts';
import { foreignClusterIndexes, SightingWriter } from '../discovery/sightings.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { AgentParts } from './parts.ts';

/** LAN discovery, in the order of its start: what is announced is learnt from a ConfigMap, what is seen is written. */
export function lanComponents(
  parts: AgentParts,
  { home, caches, metrics }: { home: KubeClient; caches: Caches; metrics: ControllerMetrics },
): Component[] {
  const { config, clock, log } = parts;
  const announcements = caches.of(configMaps, {
    list: {
      namespace: config.systemNamespace,
      fieldSelector: `metadata.name=${ANNOUNCEMENT_CONFIG_MAP}`,
    },
  });
  const clusters = caches.of(foreignClusters, { indexes: foreignClusterIndexes });
  const source = new LanSource({
    clock,
    log: log.named('lan'),
    ttlSeconds: config.lanTtlSeconds,
    ...(config.lanInterfaces.length > 0 && { interfaces: config.lanInterfaces }),
  });
  const writer = new SightingWriter({
    client: home,
    source,
    clusters,
    clock,
    log: log.named('sightings'),
    metrics,
  });
  const key = `${config.systemNamespace}/${ANNOUNCEMENT_CONFIG_MAP}`;
  return [announcements, clusters, source, announcer({ announcements, key, source, log }), writer];
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
    stop: async () => Promise.resolve(unsubscribe()),
  };
}
