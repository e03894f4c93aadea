import { isIP } from 'node:net';
import type { OwnAnnouncement } from '../api/own-announcement.ts';
import { splitEndpoint } from '../lib/endpoint.ts';
import type { Announcement } from './source.ts';

/** What to say of ourselves on the LAN. */
export interface OwnLanAnnouncement {
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
