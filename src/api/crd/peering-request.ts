import {
  PEERING_REQUEST_CONDITIONS,
  peeringRequests,
  type PeeringRequestSpec,
  type PeeringRequestStatus,
  type Suspension,
} from '../peering-request.ts';
import {
  AGE,
  approval,
  clusterID,
  clusterName,
  column,
  fenceTerms,
  homeNamespaces,
  message,
  observedGeneration,
  phase,
  policyName,
  reason,
  resourceList,
  time,
} from './common.ts';
import type { Definition } from './definition.ts';
import { namespaceOffers, offer, signature, signedContract, withheldNamespaces } from './offer.ts';
import { conditions, int32, int64, objectOf, wholeOf, type Schema } from './schema.ts';

const spec: Schema = objectOf<PeeringRequestSpec>(
  'Who asks for what, and the decision of a person.',
  ['clusterID', 'namespaces'],
  {
    clusterID: clusterID('The cluster that asks; also the name of this object. It has proved this identity.'),
    clusterName: clusterName('The name that it gives itself; anybody can choose any.'),
    namespaces: homeNamespaces(
      'Its namespaces whose pods it wants to run here. Of a cluster that nobody has let in, only as many as fit into 1 KiB.',
    ),
    moreNamespaces: int64(
      'How many more namespaces it wants than are named here. Only while nobody has let it in; then all are named. What it ' +
        'wants it may change at any time, also after your decision: how much it may use is said by the SharingPolicy.',
      { minimum: 1 },
    ),
    tenantNames: namespaceOffers(
      'Those of the namespaces that must have a certain name here, and are not wanted under another.',
    ),
    tether: {
      type: 'boolean',
      description:
        'It wants to be tethered to this cluster: this cluster is to decide what runs there. A SharingPolicy must allow it.',
    },
    fence: fenceTerms(
      'It wants its pods here to be stopped when nothing is heard of it, since it runs them itself then.',
    ),
    approval: approval(
      'Your decision, if the SharingPolicy leaves it to a person. Denied also revokes what was granted.',
    ),
  },
);

const status: Schema = objectOf<PeeringRequestStatus>(
  'What was decided, offered, agreed on and set up.',
  [],
  {
    observedGeneration,
    phase,
    reason,
    message,
    policy: policyName,
    policyGeneration: int64('Generation of that SharingPolicy when the offer was made.', { minimum: 0 }),
    token: {
      type: 'string',
      description: 'Name of the join token by which the peer was let in; the peer need not show it again.',
      maxLength: 253,
    },
    offer: offer('The current offer.'),
    offerSignature: signature('Our signature over the offer: Ed25519, base64.'),
    contract: signedContract('What both have agreed on.'),
    promised: resourceList('What the contract promises.'),
    used: resourceList('What is used of the contract, over all tenant namespaces.'),
    tenantNamespaces: namespaceOffers('Namespaces made for it.'),
    withheld: withheldNamespaces('Its namespaces that have no tenant here, and why.'),
    credentialExpires: time('End of the last token that was handed out.'),
    ends: time(
      'When its pods here end, because no SharingPolicy selects it any more. A policy that selects it takes this back.',
    ),
    suspension: objectOf<Suspension>(
      'The last time that its rights were taken, because it wrote too much and did not wait as it was told. It ends by ' +
        'itself, or by the annotation tributary.dev/resume=true. Kept for a day, because the next one is twice as long.',
      ['since', 'until', 'count', 'why'],
      {
        since: time('When it began.'),
        until: time('When it ends.'),
        count: int32('How often in a row, this one included.', { minimum: 1, maximum: 2_147_483_647 }),
        why: { type: 'string', description: 'What the peer has done.', maxLength: 1024 },
      },
    ),
    conditions: conditions(Object.values(PEERING_REQUEST_CONDITIONS).join(', ')),
  },
);

export const peeringRequestDefinition: Definition = {
  type: peeringRequests,
  shortNames: ['pr'],
  columns: [
    column('Cluster', '.spec.clusterName', 'The name that it gives itself.'),
    column('Phase', '.status.phase', 'The phase of the peering.'),
    column('Reason', '.status.reason', 'Why the peering is in that phase.'),
    column(
      'Approved',
      '.status.conditions[?(@.type=="Approved")].status',
      'Whether a policy, a token or a person has let the cluster in.',
    ),
    column(
      'Home',
      '.status.conditions[?(@.type=="HomePresent")].status',
      'Whether its home is present; while it is away, the guardian looks after its pods.',
    ),
    column('Ends', '.status.ends', 'When its pods here end, if no policy selects it any more.'),
    AGE,
    column('Policy', '.status.policy', 'SharingPolicy that decided.', { priority: 1 }),
    column('CPU', '.status.promised.cpu', 'CPU that is promised.', { priority: 1 }),
    column('Memory', '.status.promised.memory', 'Memory that is promised.', { priority: 1 }),
  ],
  schema: {
    ...wholeOf('A cluster that wants to use this one. Made by Tributary; a person approves or denies.', {
      spec,
      status,
    }),
    'x-kubernetes-validations': [
      { rule: 'self.metadata.name == self.spec.clusterID', message: 'the name must be the clusterID' },
    ],
  },
};
