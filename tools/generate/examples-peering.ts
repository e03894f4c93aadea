/** Objects that a person writes so that clusters find each other and agree. */
import type { AcceptancePolicy } from '../../src/api/acceptance-policy.ts';
import type { ForeignCluster } from '../../src/api/foreign-cluster.ts';
import type { SearchDomain } from '../../src/api/search-domain.ts';
import type { SharingPolicy } from '../../src/api/sharing-policy.ts';
import { API_VERSION } from '../../src/api/virtual-node.ts';
import type { KubeObject } from '../../src/api/wire.ts';

export type Written<T extends KubeObject> = Omit<T, 'metadata' | 'status'> & {
  metadata: { name: string; namespace?: string };
};

/** Made up; `tributary id` prints the real one. */
const MILAN = 'mfrggzdfmztwq2lknnwg23tpob';
const NETWORK_KEY = { name: 'family', key: 'key' };

const sharing: Written<SharingPolicy> = {
  apiVersion: API_VERSION,
  kind: 'SharingPolicy',
  metadata: { name: 'family' },
  spec: {
    peers: { networkKeySecretRef: NETWORK_KEY },
    approval: 'Automatic',
    sharePercent: 50,
    limits: { memory: '64Gi', storage: '500Gi' },
    withhold: ['nvidia.com/gpu'],
  },
};

const visitors: Written<SharingPolicy> = {
  apiVersion: API_VERSION,
  kind: 'SharingPolicy',
  metadata: { name: 'visitors' },
  spec: {
    peers: { anyone: true, discovery: ['LAN'] },
    approval: 'Manual',
    precedence: -1,
    sharePercent: 10,
    podSecurity: 'restricted',
  },
};

/** For peers that are not well known. */
const guests: Written<SharingPolicy> = {
  apiVersion: API_VERSION,
  kind: 'SharingPolicy',
  metadata: { name: 'guests' },
  spec: {
    peers: { clusterIDs: [MILAN] },
    approval: 'Manual',
    sharePercent: 30,
    limits: { cpu: '16', memory: '64Gi', 'ephemeral-storage': '100Gi', storage: '200Gi' },
    podSecurity: 'restricted',
    runtimeClassName: 'kata',
    nodeSelector: { pool: 'guests' },
    tolerations: [{ key: 'guests', operator: 'Exists', effect: 'NoSchedule' }],
    isolation: 'Tenant',
    maxPriority: 0,
    storageClasses: ['standard'],
    keepForSeconds: 3600,
  },
};

const acceptance: Written<AcceptancePolicy> = {
  apiVersion: API_VERSION,
  kind: 'AcceptancePolicy',
  metadata: { name: 'family' },
  spec: {
    peers: { networkKeySecretRef: NETWORK_KEY },
    approval: 'Automatic',
    ceilings: { cpu: '16' },
    minimum: { cpu: '1', memory: '1Gi' },
    namespaces: ['shop'],
  },
};

const foreignCluster: Written<ForeignCluster> = {
  apiVersion: API_VERSION,
  kind: 'ForeignCluster',
  metadata: { name: 'milan' },
  spec: {
    clusterID: MILAN,
    endpoint: 'tributary.milan.example.org:7443',
    outgoing: 'Enabled',
    incoming: 'Disabled',
    namespaces: ['shop'],
    joinTokenSecretRef: { name: 'milan-join-token' },
  },
};

const searchDomain: Written<SearchDomain> = {
  apiVersion: API_VERSION,
  kind: 'SearchDomain',
  metadata: { name: 'example' },
  spec: { domain: 'clusters.example.org' },
};

/** Path -> what it shows, and the objects. */
export const PEERING_EXAMPLES: Readonly<Record<string, [comment: string, objects: readonly object[]]>> = {
  'deploy/examples/policies.yaml': [
    'What is lent to whom, and whose offers are taken: clusters that hold the key in the Secret tributary-system/family\n' +
      '# peer by themselves; anybody else on the local network may ask, and a person answers.',
    [sharing, visitors, acceptance],
  ],
  'deploy/examples/sharing-policy.yaml': [
    'Lending safely, see docs/sharing.md: to one cluster, after a person has said yes, in a hardened runtime, on nodes that a\n' +
      '# label and a taint keep for guests, with bounds for disks and volumes. RuntimeClass and StorageClass must be there.',
    [guests],
  ],
  'deploy/examples/foreign-cluster.yaml': [
    'A cluster that discovery does not find, with a one-time token that it has given us.',
    [foreignCluster],
  ],
  'deploy/examples/search-domain.yaml': ['A DNS domain that lists clusters.', [searchDomain]],
};
