/** docs/reference/reasons.md, from the texts in src/api/reasons. */
import { EVENT_TEXTS, type EventText, SHORTAGE_TEXT } from '../../src/api/reasons/event-texts.ts';
import { TUNNEL_TEXTS } from '../../src/api/reasons/network.ts';
import { NAMESPACE_OFFLOADING_TEXTS, OFFLOADED_PHASE_TEXTS } from '../../src/api/reasons/offloading.ts';
import {
  ACCEPTANCE_POLICY_TEXTS,
  ADVERTISEMENT_TEXTS,
  CLUSTER_MODE_TEXTS,
  FOREIGN_CLUSTER_TEXTS,
  MODE_PHASE_TEXTS,
  OFFER_DECISION_TEXTS,
  PEERING_PHASE_TEXTS,
  PEERING_REQUEST_TEXTS,
  SEARCH_DOMAIN_TEXTS,
  SERVICE_TEXTS,
  SHARING_POLICY_TEXTS,
} from '../../src/api/reasons/peering.ts';
import {
  DISRUPTION_TEXTS,
  HOME_REACH_TEXTS,
  NODE_TEXTS,
  OFFLOADED_TEXTS,
  REACH_TEXTS,
  REQUEST_TEXTS,
  VIRTUAL_NODE_TEXTS,
} from '../../src/api/reasons/pods.ts';
import type { ReasonText } from '../../src/api/reasons/text.ts';

const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const table = (texts: Readonly<Record<string, ReasonText>>, what = 'reason'): string =>
  [
    row(what, 'means', 'do'),
    row('---', '---', '---'),
    ...Object.entries(texts).map(([reason, { means, todo }]) => row(`\`${reason}\``, means, todo)),
  ].join('\n');

const events = (texts: Readonly<Record<string, EventText>>): string =>
  [
    row('event', 'type', 'means', 'do'),
    row('---', '---', '---', '---'),
    ...Object.entries(texts).map(([reason, { type, means, todo }]) =>
      row(`\`${reason}\``, type, means, todo),
    ),
  ].join('\n');

const POD_EVENTS = { ...EVENT_TEXTS.Pod, [SHORTAGE_TEXT.example]: SHORTAGE_TEXT };

const INTRODUCTION = `<!-- Made by tools/generate.ts from src/api/reasons. -->

# Reasons

A reason is one word that says why something is as it is, in conditions, states and events. The message beside it has the
details. Each kind of object has its own section: first its phases, then its reasons, then its events. An event that repeats a
reason or a phase is named above its table, and is not told twice.
`;

const podSections = (): string => `## On a pod

Condition \`tributary.dev/Offloaded\` with status False. Each is also an event of type Warning, \`NamespaceBeingMade\` of type Normal, if the
agent may write events in the namespace.

${table(OFFLOADED_TEXTS)}

Condition \`Ready\` with status False, and the reason of the status:

${table(REACH_TEXTS)}

Condition \`DisruptionTarget\`: the pod is not at fault, which the \`podFailurePolicy\` of a Job can ask for.

${table(DISRUPTION_TEXTS)}

Events of the remote pod are events of the home pod, too, with the words of the foreign cluster. Besides these, and the above, there are the
following; the resource in \`${SHORTAGE_TEXT.example}\` is an example.

${events(POD_EVENTS)}

## On a PersistentVolumeClaim

Also events of the foreign cluster about the claim over there, with the words of its provisioner, and \`Forbidden\`, \`ExceededQuota\`,
\`Invalid\` and \`TenantNamespaceNotFound\`, which mean what they mean on a pod.

${events(EVENT_TEXTS.PersistentVolumeClaim)}

## On an object that is copied

ConfigMaps, Secrets, Services, EndpointSlices, Ingresses and objects of the kinds that rules name. Also \`NameTaken\`, \`Forbidden\`,
\`ExceededQuota\`, \`Invalid\`, \`TenantNamespaceNotFound\` and \`MissingReference\`, which mean what they mean on a pod.

${events(EVENT_TEXTS.Copied)}
`;

const namespaceSections = (): string => `## On a namespace

At a provider, \`HomeAway\` and \`HomeGone\` of the [PeeringRequest](#on-a-peeringrequest) are events of the tenant namespaces of a home
that has none.

${events(EVENT_TEXTS.Namespace)}

## On a NamespaceOffloading

Phases of its entries, one for each foreign cluster:

${table(OFFLOADED_PHASE_TEXTS, 'phase')}

Reasons of its conditions and of its entries. A new reason of \`Ready\` is an event, too: of type Normal with \`AsExpected\`, \`InProgress\` and
\`Ending\`, else Warning. So is the reason of an entry that has failed (Warning), and \`PodsAtHome\` (Normal).

${table(NAMESPACE_OFFLOADING_TEXTS)}

Further events:

${events(EVENT_TEXTS.NamespaceOffloading)}
`;

const nodeSections = (): string => `## On a VirtualNode

${table(VIRTUAL_NODE_TEXTS)}

Conditions \`HomeApiServerReachable\` and \`HomeDNSReachable\`:

${table(HOME_REACH_TEXTS)}

Events; also \`KindNotServed\`, \`KindForbidden\` and \`InvalidReflectionRule\` of a [namespace](#on-a-namespace):

${events(EVENT_TEXTS.VirtualNode)}

## On a Node that is virtual

Condition \`Ready\` has the reasons of the VirtualNode, and condition \`NetworkUnavailable\` those of the [Tunnel](#on-a-tunnel). Besides:

${table(NODE_TEXTS)}

## On a CertificateSigningRequest

${table(REQUEST_TEXTS)}
`;

const peeringSections = (): string => `## On a ForeignCluster

Phases of \`outgoing\` and \`incoming\`. A new one is an event, too, with the direction before it, for example \`OutgoingOffered\`: of type
Warning if it is \`Denied\`, else Normal.

${table(PEERING_PHASE_TEXTS, 'phase')}

Reasons of its phases and conditions; those of the condition \`NetworkReady\` are the reasons of the [Tunnel](#on-a-tunnel).
\`WrongIdentity\`, \`IdentityUnconfirmed\`, \`EndpointUnreachable\` and \`IncompatibleProtocol\` are also events of type Warning.

${table(FOREIGN_CLUSTER_TEXTS)}

Further events:

${events(EVENT_TEXTS.ForeignCluster)}

## On an Advertisement

What others lend us. Its decision:

${table(OFFER_DECISION_TEXTS, 'decision')}

Reasons of the decision and of its conditions:

${table(ADVERTISEMENT_TEXTS)}

Reasons of the provider’s Services in \`status.services\`:

${table(SERVICE_TEXTS)}

Events:

${events(EVENT_TEXTS.Advertisement)}

## On a PeeringRequest

What others use of us. Its phases, and the reasons of these, are those of a [ForeignCluster](#on-a-foreigncluster). A new phase is an event,
too: of type Warning with \`Denied\` and \`Ending\`, else Normal. So is \`EndsSoon\` (Warning).

Reasons of its conditions, besides those; all but \`AsExpected\` and \`KindNotServed\` are also events of type Warning, and
\`HomePresent\` (Normal) says that the home is back.

${table(PEERING_REQUEST_TEXTS)}
`;

const policySections = (): string => `## On a SharingPolicy

${table(SHARING_POLICY_TEXTS)}

Events:

${events(EVENT_TEXTS.SharingPolicy)}

## On an AcceptancePolicy

${table(ACCEPTANCE_POLICY_TEXTS)}

## On a SearchDomain

${table(SEARCH_DOMAIN_TEXTS)}
`;

const networkSections = (): string => `## On a Tunnel

Reasons of its conditions, and of prefixes in \`status.refused\`. A new reason for which the tunnel is not Ready is also an event of type
Warning.

${table(TUNNEL_TEXTS)}

Further events:

${events(EVENT_TEXTS.Tunnel)}

## On the ClusterMode

Its phase. A new one is an event, too: of type Warning with \`Refused\` and \`Lost\`, else Normal.

${table(MODE_PHASE_TEXTS, 'phase')}

Reasons of the condition \`Tethered\`:

${table(CLUSTER_MODE_TEXTS)}
`;

export const reasonsDocument = (): string =>
  [
    INTRODUCTION,
    podSections(),
    namespaceSections(),
    nodeSections(),
    peeringSections(),
    policySections(),
    networkSections(),
  ].join('\n');
