import { foreignClusters } from '../api/foreign-cluster.ts';
import { ANNOUNCEMENT_CONFIG_MAP } from '../api/own-announcement.ts';
import { configMaps } from '../api/resources.ts';
import { LanSource } from '../discovery/lan/lan-source.ts';
import { announcer } from '../discovery/own-announcement.ts';
import { foreignClusterIndexes, SightingWriter } from '../discovery/sighting-writer.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { HostNetwork } from '../network/host/host-config.ts';
import type { AgentParts } from './parts.ts';

/** LAN discovery, in the order of its start: a ConfigMap says what is announced; clusters that are seen are written. */
export function lanComponents(
  parts: AgentParts,
  given: {
    home: KubeClient;
    caches: Caches;
    metrics: ControllerMetrics;
    /** Whose changes are told. Default: interfaces are read again and again. */
    host?: HostNetwork;
  },
): Component[] {
  const { home, caches, metrics, host } = given;
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
    ...(host && { onHostChange: (listener: () => void) => host.onChange(listener) }),
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
