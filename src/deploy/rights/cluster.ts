/**
 * All that the roles `cluster`, `gateway` and `node` may do in their cluster: the tables of their parts, grouped by the
 * place where the rights hold. The RBAC roles and docs/rights.md are generated from this.
 */
import { AGENTS_NAMESPACE, CLUSTER_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { ANNOUNCEMENT_CONFIG_MAP } from '../../api/own-announcement.ts';
import type { Right } from '../../api/rbac.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import { SIGHTING_RIGHTS, WAN_RIGHTS } from '../../discovery/rights.ts';
import {
  GUARDIAN_EVENT_RIGHTS,
  GUARDIAN_PEERS_RIGHTS,
  GUARDIAN_RIGHTS,
  GUESTS_RIGHTS,
  TENANT_RIGHTS,
} from '../../hosting/rights.ts';
import {
  EXCHANGE_DEFAULT_RIGHTS,
  EXCHANGE_RIGHTS,
  EXCHANGE_SYSTEM_RIGHTS,
} from '../../network/exchange/rights.ts';
import {
  GATEWAY_EVENT_RIGHTS,
  GATEWAY_NETWORK_RIGHTS,
  GATEWAY_SYSTEM_RIGHTS,
} from '../../network/gateway/rights.ts';
import { NODE_RIGHTS, NODE_SYSTEM_RIGHTS } from '../../network/node/rights.ts';
import {
  OFFLOAD_EVENT_RIGHTS,
  OFFLOAD_RIGHTS,
  RELEASE_EVENT_RIGHTS,
  AWAY_RIGHTS,
  RELEASE_RIGHTS,
  RELEASE_SYSTEM_RIGHTS,
} from '../../offloading/rights.ts';
import {
  BORROWING_CLUSTER_RIGHTS,
  BORROWING_EVENT_RIGHTS,
  BORROWING_LEASE_RIGHTS,
  BORROWING_SYSTEM_RIGHTS,
} from '../../peering/borrowing/rights.ts';
import { CLUSTERS_RIGHTS, CLUSTERS_SYSTEM_RIGHTS } from '../../peering/clusters/rights.ts';
import { IDENTITY_RIGHTS } from '../../peering/identity/rights.ts';
import {
  LENDING_CLUSTER_RIGHTS,
  LENDING_DEFAULT_RIGHTS,
  LENDING_PEERS_RIGHTS,
  LENDING_SYSTEM_RIGHTS,
} from '../../peering/lending/rights.ts';
import { MODE_RIGHTS } from '../../peering/mode/rights.ts';
import { STOCK_RIGHTS } from '../../peering/offer/rights.ts';
import { SERVICES_RIGHTS } from '../../peering/services/rights.ts';
import { GATEWAY_ACCOUNT } from '../program.ts';
import { LAUNCH_AGENTS_RIGHTS, LAUNCH_CLUSTER_RIGHTS, LAUNCH_SYSTEM_RIGHTS } from './launch.ts';
import { SETTINGS_RIGHTS } from './settings.ts';
import { WEBHOOK_SYSTEM_RIGHTS, webhookRights } from './webhook.ts';

export const GATEWAY_NAME: string = GATEWAY_ACCOUNT.name;
export const NODE_NAME = 'tributary-node';

/** The rights that one part has in one place. */
interface PartRights {
  part: string;
  rights: readonly Right[];
}

/** The rights in one place: a namespace, or the whole cluster. */
export interface PlaceRights {
  /** Absent: cluster-wide. */
  namespace?: string;
  parts: readonly PartRights[];
}

const APPROVER_RIGHTS: readonly Right[] = [
  {
    resource: 'certificatesigningrequests.certificates.k8s.io',
    verbs: ['list', 'watch'],
    why: 'finds requests of agents for serving certificates',
  },
  {
    resource: 'certificatesigningrequests.certificates.k8s.io/approval',
    verbs: ['update'],
    why: 'approves one after it was checked against the agent that asks',
  },
  {
    resource: 'signers.certificates.k8s.io',
    names: ['kubernetes.io/kubelet-serving'],
    verbs: ['approve'],
    why: 'for this signer only: no client certificate can be approved',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which node belongs to which agent',
  },
];

const APPROVER_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'whether the address in a request is that of the agent that asks',
  },
];

/** For the Lease that decides which of several replicas leads. */
const leaderRights = (name: string): Right[] => [
  {
    resource: 'leases.coordination.k8s.io',
    verbs: ['create'],
    why: 'makes the Lease by which one of several replicas leads',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: [name],
    verbs: ['get', 'update'],
    why: 'takes and renews it',
  },
];

const ANNOUNCEMENT_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    verbs: ['create'],
    why: 'what this cluster says of itself, for the gateway',
  },
  {
    resource: 'configmaps',
    names: [ANNOUNCEMENT_CONFIG_MAP],
    verbs: ['patch'],
    why: 'keeps it as it is',
  },
];

/** Events about cluster-scoped objects are in `default`. Events about pods and namespaces are in those namespaces. */
const isEvent = ({ resource }: Right): boolean => resource === 'events';
const withoutEvents = (rights: readonly Right[]): Right[] => rights.filter((right) => !isEvent(right));

export const CLUSTER_RIGHTS: readonly PlaceRights[] = [
  {
    parts: [
      { part: 'serving certificates of agents', rights: APPROVER_RIGHTS },
      { part: 'discovery', rights: [...SIGHTING_RIGHTS, ...WAN_RIGHTS] },
      { part: 'known clusters', rights: withoutEvents(CLUSTERS_RIGHTS) },
      { part: 'mode', rights: withoutEvents(MODE_RIGHTS) },
      { part: 'lending', rights: withoutEvents(LENDING_CLUSTER_RIGHTS) },
      { part: 'tenants', rights: TENANT_RIGHTS },
      { part: 'guardian', rights: GUARDIAN_RIGHTS },
      { part: 'offers', rights: STOCK_RIGHTS },
      { part: 'quotas of peers', rights: GUESTS_RIGHTS },
      { part: 'borrowing', rights: withoutEvents(BORROWING_CLUSTER_RIGHTS) },
      { part: 'offered Services', rights: SERVICES_RIGHTS },
      { part: 'network', rights: EXCHANGE_RIGHTS },
      { part: 'starting agents', rights: LAUNCH_CLUSTER_RIGHTS },
      { part: 'offloaded namespaces', rights: [...OFFLOAD_RIGHTS, ...OFFLOAD_EVENT_RIGHTS] },
      { part: 'pods of a cluster that is away', rights: AWAY_RIGHTS },
      { part: 'release of pods', rights: [...RELEASE_RIGHTS, ...RELEASE_EVENT_RIGHTS] },
      { part: 'admission webhook', rights: webhookRights(SYSTEM_NAMESPACE) },
    ],
  },
  {
    namespace: SYSTEM_NAMESPACE,
    parts: [
      { part: 'serving certificates of agents', rights: APPROVER_SYSTEM_RIGHTS },
      { part: 'settings', rights: SETTINGS_RIGHTS },
      { part: 'leading', rights: leaderRights(CLUSTER_NAME) },
      { part: 'identity', rights: IDENTITY_RIGHTS },
      { part: 'announcement', rights: ANNOUNCEMENT_RIGHTS },
      { part: 'known clusters', rights: CLUSTERS_SYSTEM_RIGHTS },
      { part: 'lending', rights: LENDING_SYSTEM_RIGHTS },
      { part: 'borrowing', rights: BORROWING_SYSTEM_RIGHTS },
      { part: 'network', rights: EXCHANGE_SYSTEM_RIGHTS },
      { part: 'starting agents', rights: LAUNCH_SYSTEM_RIGHTS },
      { part: 'release of pods', rights: RELEASE_SYSTEM_RIGHTS },
      { part: 'admission webhook', rights: WEBHOOK_SYSTEM_RIGHTS },
    ],
  },
  { namespace: AGENTS_NAMESPACE, parts: [{ part: 'starting agents', rights: LAUNCH_AGENTS_RIGHTS }] },
  {
    namespace: PEERS_NAMESPACE,
    parts: [
      { part: 'lending', rights: LENDING_PEERS_RIGHTS },
      { part: 'guardian', rights: GUARDIAN_PEERS_RIGHTS },
    ],
  },
  { namespace: 'kube-node-lease', parts: [{ part: 'borrowing', rights: BORROWING_LEASE_RIGHTS }] },
  {
    namespace: 'default',
    parts: [
      { part: 'lending', rights: LENDING_DEFAULT_RIGHTS },
      { part: 'network', rights: EXCHANGE_DEFAULT_RIGHTS },
      { part: 'guardian', rights: GUARDIAN_EVENT_RIGHTS },
      {
        part: 'events',
        rights: [
          ...CLUSTERS_RIGHTS,
          ...MODE_RIGHTS,
          ...LENDING_CLUSTER_RIGHTS,
          ...BORROWING_EVENT_RIGHTS,
        ].filter(isEvent),
      },
    ],
  },
];

/** Of a gateway that only does discovery on the LAN. */
export const LAN_GATEWAY_RIGHTS: readonly PlaceRights[] = [
  { parts: [{ part: 'discovery on the LAN', rights: SIGHTING_RIGHTS }] },
  {
    namespace: SYSTEM_NAMESPACE,
    parts: [
      {
        part: 'announcement',
        rights: [
          {
            resource: 'configmaps',
            names: [ANNOUNCEMENT_CONFIG_MAP],
            verbs: ['list', 'watch'],
            why: 'what to announce of this cluster',
          },
        ],
      },
      { part: 'settings', rights: SETTINGS_RIGHTS },
      { part: 'leading', rights: leaderRights(GATEWAY_NAME) },
    ],
  },
];

export const GATEWAY_RIGHTS: readonly PlaceRights[] = [
  ...LAN_GATEWAY_RIGHTS,
  { parts: [{ part: 'tunnels', rights: GATEWAY_NETWORK_RIGHTS }] },
  { namespace: SYSTEM_NAMESPACE, parts: [{ part: 'tunnels', rights: GATEWAY_SYSTEM_RIGHTS }] },
  { namespace: 'default', parts: [{ part: 'events', rights: GATEWAY_EVENT_RIGHTS }] },
];

export const NODE_ROLE_RIGHTS: readonly PlaceRights[] = [
  { parts: [{ part: 'routes', rights: NODE_RIGHTS }] },
  {
    namespace: SYSTEM_NAMESPACE,
    parts: [
      { part: 'settings', rights: SETTINGS_RIGHTS },
      { part: 'routes', rights: NODE_SYSTEM_RIGHTS },
    ],
  },
];

/** All rights in one place, merged so that each resource with its names is there once. */
export function rightsAt(places: readonly PlaceRights[], namespace?: string): Right[] {
  const parts = places.filter((place) => place.namespace === namespace).flatMap((place) => place.parts);
  const merged = new Map<string, Right>();
  for (const right of parts.flatMap(({ rights }) => rights)) {
    const key = `${right.resource} ${right.names?.toSorted().join() ?? ''}`;
    const before = merged.get(key);
    merged.set(key, before === undefined ? right : joined(before, right));
  }
  return [...merged.values()];
}

const joined = (a: Right, b: Right): Right => ({
  ...a,
  verbs: [...new Set([...a.verbs, ...b.verbs])],
  why: a.why === b.why ? a.why : `${a.why}; ${b.why}`,
});
