/**
 * Every kind of object that a role may write, by the table of rights that lets it: who beyond this cluster can make it write that,
 * what bounds it, and which test shows the bound. A right to write that is not here is noticed by the test beside it.
 */

type Driver = 'stranger' | 'consumer' | 'provider' | 'LAN';
interface Shown {
  file: string;
  test: string;
}
export type Writer =
  | { by: readonly Driver[]; bound: string; shown: Shown }
  /** Only this cluster and its people, or nothing that is stored. */
  | { by: 'nobody'; why: string };

const own = (why: string): Writer => ({ by: 'nobody', why });
const NOT_STORED = own('it is answered, and not stored');
const ONCE = own('made once, and kept');
const INSTALLED = own('people install and remove');

const DOCUMENTS: Shown = {
  file: 'test/unit/peering/link/document-paces.test.ts',
  test: 'that never stops changing, at most %d are taken in two minutes',
};
const STRANGERS: Shown = {
  file: 'test/integration/write-budgets.test.ts',
  test: 'cost a trickle of small objects, and nobody else waits for them',
};
const STATUSES: Shown = {
  file: 'test/integration/write-budgets.test.ts',
  test: 'fills neither the pod nor etcd at home, and its last word is shown, cut, as it says',
};
const CLUSTERS: Shown = {
  file: 'test/unit/peering/clusters/clusters.test.ts',
  test: 'a stranger that describes itself anew without end is written seldom, and as it is in the end',
};
const TUNNELS: Shown = {
  file: 'test/unit/network/gateway/reports.test.ts',
  test: 'a peer of which each look tells something else is written further and further apart',
};
const LAN: Shown = {
  file: 'test/integration/lan-hostile.test.ts',
  test: 'a flood of 10,000 announcements costs no memory, and hides nobody',
};
const EVENTS: Shown = {
  file: 'test/unit/kube/events.test.ts',
  test: 'all objects together have one rate, and what is told keeps no controls',
};
const EVENTS_HOME: Shown = {
  file: 'test/unit/provider/events/inbox.test.ts',
  test: 'many pods share a rate, whatever their names',
};
const PACES: Shown = {
  file: 'test/unit/deploy/writers.test.ts',
  test: 'what never ends is written so often at most',
};

const MADE_POLICIES: Shown = {
  file: 'test/unit/hosting/tenants/guest-policy-writes.test.ts',
  test: 'a home whose addresses change without end has its policies made anew as a budget of bytes allows',
};
const MADE_SLICES: Shown = {
  file: 'test/unit/hosting/tenants/native-endpoints.test.ts',
  test: 'and comes and goes without end makes us write no more than a budget of bytes',
};
const JOURNALS: Shown = {
  file: 'test/unit/hosting/guardian/journal.test.ts',
  test: 'what changes without end is stored whole as often as a budget of bytes allows',
};

const words = (...by: Driver[]): Writer => ({ by, bound: 'DOCUMENT_PACES', shown: DOCUMENTS });
const told = (...by: Driver[]): Writer => ({ by, bound: 'EVENT_RATE', shown: EVENTS });
const tunnel: Writer = { by: ['consumer', 'provider'], bound: 'VERDICT_PACE', shown: TUNNELS };
const clusters: Writer = {
  by: ['stranger', 'consumer', 'provider'],
  bound: 'STATUS_PACES; new ones: 100, then one a second',
  shown: CLUSTERS,
};
const sightings: Writer = {
  by: ['LAN'],
  bound: 'the most that the cache of discovery holds, and its rate',
  shown: LAN,
};

const statuses: Writer = { by: ['provider'], bound: 'HOME_PACES, 32 KiB', shown: STATUSES };
const paced = (...by: Driver[]): Writer => ({ by, bound: 'HOME_PACES', shown: PACES });

/** By the part of a role, then by resource; as the tables of rights name both. */
export const WRITERS: Readonly<Record<string, Readonly<Record<string, Writer>>>> = {
  agent: {
    nodes: words('provider'),
    'nodes/status': paced('provider'),
    pods: own('a home pod goes when it was deleted at home, or when its body is lost: see LossBudget'),
    'pods/status': statuses,
    persistentvolumes: paced('provider'),
    persistentvolumeclaims: paced('provider'),
    'virtualnodes.tributary.dev/status': paced('provider'),
    'certificatesigningrequests.certificates.k8s.io': own('for its own serving certificate'),
    'tokenreviews.authentication.k8s.io': NOT_STORED,
    'subjectaccessreviews.authorization.k8s.io': NOT_STORED,
    'serviceaccounts/token': NOT_STORED,
    'leases.coordination.k8s.io': own('a heartbeat at its own pace'),
    events: { by: ['provider'], bound: 'Allowance and EVENT_RATE', shown: EVENTS_HOME },
  },
  'serving certificates of agents': {
    'certificatesigningrequests.certificates.k8s.io/approval': own('for agents of this cluster only'),
  },
  discovery: {
    'foreignclusters.tributary.dev': sightings,
    'foreignclusters.tributary.dev/status': sightings,
    'searchdomains.tributary.dev/status': own('a look at a zone, at its own pace'),
  },
  'discovery on the LAN': {
    'foreignclusters.tributary.dev': sightings,
    'foreignclusters.tributary.dev/status': sightings,
  },
  'known clusters': {
    'foreignclusters.tributary.dev': clusters,
    'foreignclusters.tributary.dev/status': clusters,
    'acceptancepolicies.tributary.dev/status': words('provider'),
  },
  mode: {
    'clustermodes.tributary.dev': ONCE,
    'clustermodes.tributary.dev/status': words('consumer', 'provider'),
    'sharingpolicies.tributary.dev': own('one policy, while this cluster is tethered'),
  },
  lending: {
    'peeringrequests.tributary.dev': {
      by: ['stranger', 'consumer'],
      bound: 'STRANGER_PACE, DOCUMENT_PACES',
      shown: STRANGERS,
    },
    'peeringrequests.tributary.dev/status': {
      by: ['stranger', 'consumer'],
      bound: 'STRANGER_PACE, DOCUMENT_PACES',
      shown: STRANGERS,
    },
    'sharingpolicies.tributary.dev/status': words('consumer'),
    serviceaccounts: words('consumer'),
    'serviceaccounts/token': NOT_STORED,
    secrets: own('join tokens that people make; each is marked as used once'),
    'leases.coordination.k8s.io': own('the fence of a device, written when a renewal is due'),
    events: told('stranger', 'consumer'),
  },
  tenants: {
    namespaces: words('consumer'),
    pods: own('deletes'),
    resourcequotas: words('consumer'),
    limitranges: words('consumer'),
    serviceaccounts: words('consumer'),
    'networkpolicies.networking.k8s.io': {
      by: ['consumer'],
      bound: 'POLICY_WRITES; those of the isolation: DOCUMENT_PACES',
      shown: MADE_POLICIES,
    },
    'guestnetworkpolicies.tributary.dev/status': {
      by: ['consumer'],
      bound: 'POLICY_WRITES',
      shown: MADE_POLICIES,
    },
    'rolebindings.rbac.authorization.k8s.io': words('consumer'),
    'roles.rbac.authorization.k8s.io': words('consumer'),
    'selfsubjectrulesreviews.authorization.k8s.io': NOT_STORED,
    'endpointslices.discovery.k8s.io': {
      by: ['consumer'],
      bound: 'NATIVE_WRITES; VERDICT_WRITES for those of the peer itself',
      shown: MADE_SLICES,
    },
    'flowschemas.flowcontrol.apiserver.k8s.io': words('consumer'),
  },
  guardian: {
    'leases.coordination.k8s.io': ONCE,
    pods: own('makes a lost pod anew, as was agreed; see the rules of hosting for its pace'),
    'pods/status': own('the result of a pod, once'),
    'peeringrequests.tributary.dev/status': own('one condition, when a home goes or comes, with patience'),
    secrets: { by: ['consumer'], bound: 'JOURNAL_WRITES', shown: JOURNALS },
    events: told('consumer'),
  },
  borrowing: {
    'advertisements.tributary.dev': words('provider'),
    'advertisements.tributary.dev/status': words('provider'),
    'virtualnodes.tributary.dev': words('provider'),
    nodes: own('deletes'),
    pods: own('deletes'),
    'pods/eviction': NOT_STORED,
    secrets: words('provider'),
    'leases.coordination.k8s.io': own('deletes'),
  },
  'offered Services': {
    services: words('provider'),
    'endpointslices.discovery.k8s.io': words('provider'),
    'advertisements.tributary.dev/status': words('provider'),
  },
  network: {
    'tunnels.tributary.dev': words('consumer', 'provider'),
    'tunnels.tributary.dev/status': words('consumer', 'provider'),
    configmaps: own('addresses of this cluster'),
    secrets: words('consumer', 'provider'),
  },
  tunnels: {
    'tunnels.tributary.dev/status': tunnel,
    configmaps: own('the key of this cluster'),
    secrets: own('the key of this cluster'),
  },
  'starting agents': {
    'rolebindings.rbac.authorization.k8s.io': words('provider'),
    'roles.rbac.authorization.k8s.io': words('provider'),
    serviceaccounts: words('provider'),
    'deployments.apps': words('provider'),
  },
  'offloaded namespaces': {
    'namespaceoffloadings.tributary.dev': INSTALLED,
    'namespaceoffloadings.tributary.dev/status': words('provider'),
    pods: own('deletes'),
    'pods/eviction': NOT_STORED,
    events: told('provider'),
  },
  'pods of a cluster that is away': {
    pods: own(
      'each once, when its virtual node is not ready for half a minute: how long it stays, or that it goes',
    ),
    'namespaceoffloadings.tributary.dev/status': own(
      'while such a node is not ready, once in half of holdOffSeconds',
    ),
  },
  'release of pods': {
    pods: own('releases a pod without a place, each once in a while'),
    'pods/eviction': NOT_STORED,
    'pods/status': own('the mark of a release, once'),
    'namespaceoffloadings.tributary.dev/status': own('counts what was released'),
    secrets: own('notes of releases under way'),
    events: told('provider'),
  },
  'admission webhook': {
    'mutatingwebhookconfigurations.admissionregistration.k8s.io': own('its own configuration'),
    'validatingwebhookconfigurations.admissionregistration.k8s.io': own('its own configuration'),
    secrets: ONCE,
  },
  leading: { 'leases.coordination.k8s.io': own('a heartbeat at its own pace') },
  identity: { secrets: ONCE, configmaps: ONCE },
  announcement: { configmaps: own('what this cluster says of itself') },
  events: { events: told('stranger', 'consumer', 'provider') },
};
