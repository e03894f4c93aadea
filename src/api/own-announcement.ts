/**
 * What this cluster says of itself, in the ConfigMap `tributary-announcement` beside its pods: written by the role
 * that has the identity and the endpoint, read by the one that announces on the LAN and by `tributary id`. Public.
 */
import { isClusterID } from './forms.ts';

export const ANNOUNCEMENT_CONFIG_MAP = 'tributary-announcement';

export interface OwnAnnouncement {
  clusterID: string;
  clusterName: string;
  /** Where peers can dial; empty where they cannot. */
  endpoints: readonly string[];
  /** Port of the peering endpoint. */
  port: number;
  protocols: readonly number[];
}

/** `data` of the ConfigMap. */
export const announcementData = (own: OwnAnnouncement): Record<string, string> => ({
  clusterID: own.clusterID,
  clusterName: own.clusterName,
  endpoints: own.endpoints.join(','),
  port: String(own.port),
  protocols: own.protocols.join(','),
});

/** Undefined if it is not there (yet) or cannot be read. */
export function readAnnouncementData(
  data: Readonly<Record<string, string>> = {},
): OwnAnnouncement | undefined {
  const { clusterID = '', clusterName = '', endpoints = '', port = '', protocols = '' } = data;
  if (!isClusterID(clusterID) || !/^\d{1,5}$/.test(port)) return undefined;
  return {
    clusterID,
    clusterName,
    endpoints: endpoints.split(',').filter((text) => text !== ''),
    port: Number(port),
    protocols: protocols.split(',').flatMap((text) => (/^\d+$/.test(text) ? [Number(text)] : [])),
  };
}
