import type { AcceptancePolicy } from '../../../../../src/api/acceptance-policy.ts';
import type {
  ForeignCluster,
  ForeignClusterStatus,
  Sighting,
} from '../../../../../src/api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../../../../src/api/names.ts';
import type { SharingPolicy } from '../../../../../src/api/sharing-policy.ts';
import type { ObjectMeta } from '../../../../../src/api/wire.ts';
import type { LinkView } from '../../../../../src/peering/ports.ts';

export const OWN: string = 'o'.repeat(26);
export const MILAN: string = 'm'.repeat(26);
export const ROME: string = 'r'.repeat(26);
/** When everything in these tests happens. */
export const NOW: number = Date.UTC(2026, 0, 1, 12);
const at = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');

const meta = (name: string, more: Partial<ObjectMeta> = {}): ObjectMeta => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: at(NOW - 3_600_000),
  ...more,
});

/** Sighted until so many seconds from now. */
export const sighting = (host: string, seconds = 60): Sighting => ({
  endpoints: [`${host}:6844`],
  firstSeen: at(NOW - 60_000),
  expires: at(NOW + seconds * 1000),
});

export const byPerson = (
  name: string,
  spec: ForeignCluster['spec'] = {},
  more: Partial<ObjectMeta> & { status?: ForeignClusterStatus } = {},
): ForeignCluster => {
  const { status, ...metadata } = more;
  return { metadata: meta(name, metadata), spec, ...(status && { status }) };
};

export const discovered = (
  clusterID: string,
  spec: ForeignCluster['spec'] = {},
  more: Parameters<typeof byPerson>[2] = {},
): ForeignCluster =>
  byPerson(
    clusterID,
    { clusterID, ...spec },
    { ...more, labels: { [LABEL_DISCOVERED]: 'true', ...more.labels } },
  );

export const acceptance = (
  peers: AcceptancePolicy['spec']['peers'],
  spec: Partial<AcceptancePolicy['spec']> = {},
): AcceptancePolicy => ({ metadata: meta('taken'), spec: { peers, approval: 'Automatic', ...spec } });

export const sharing = (
  peers: SharingPolicy['spec']['peers'],
  spec: Partial<SharingPolicy['spec']> = {},
): SharingPolicy => ({ metadata: meta('lent'), spec: { peers, ...spec } });

export const linked = (clusterID: string, more: Partial<LinkView> = {}): LinkView => ({
  clusterID,
  connected: true,
  dialledBy: 'Us',
  endpoint: 'milan:6844',
  protocol: 1,
  software: '0.1.0',
  since: at(NOW - 10_000),
  clusterName: 'Milan',
  peerEndpoints: [],
  publicKey: new Uint8Array(32),
  networkKeys: [],
  ...more,
});
