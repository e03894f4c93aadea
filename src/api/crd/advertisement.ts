import {
  ADVERTISEMENT_CONDITIONS,
  advertisements,
  type AdvertisementSpec,
  type AdvertisementStatus,
  type ProviderServiceStatus,
} from '../advertisement.ts';
import {
  AGE,
  approval,
  clusterID,
  clusterName,
  column,
  message,
  names,
  observedGeneration,
  policyName,
  reason,
  time,
} from './common.ts';
import type { Definition } from './definition.ts';
import { offer, signature, signedContract } from './offer.ts';
import { MAX_POLICY_ENTRIES, SERVICES_LIMITS } from '../limits.ts';
import { choice, conditions, dnsLabel, int32, listOf, objectOf, wholeOf, type Schema } from './schema.ts';

const spec: Schema = objectOf<AdvertisementSpec>(
  'The offer as it was received and checked, and the decision of a person.',
  ['clusterID', 'offer', 'signature'],
  {
    clusterID: clusterID('The cluster that lends; also the name of this object.'),
    clusterName: clusterName('The name that it gives itself; anybody can choose any.'),
    offer: offer('As received and checked.'),
    signature: signature("The provider's signature over the canonical bytes of the offer: Ed25519, base64."),
    approval: approval('Your decision, if the AcceptancePolicy leaves it to a person.'),
  },
);

const services: Schema = listOf(
  'Services that the provider offers, and those that a policy here accepts.',
  SERVICES_LIMITS.services + MAX_POLICY_ENTRIES,
  objectOf<ProviderServiceStatus>('One Service of the provider.', ['namespace', 'name', 'state'], {
    namespace: dnsLabel('Its namespace in the foreign cluster.'),
    name: dnsLabel('Its name in the foreign cluster.'),
    ports: listOf('Its ports.', SERVICES_LIMITS.ports, {
      type: 'object',
      description: 'One port.',
      required: ['protocol', 'port'],
      properties: {
        name: { type: 'string', description: 'Its name, if it has one.', maxLength: 63 },
        protocol: choice('Transport protocol.', ['TCP', 'UDP', 'SCTP']),
        port: int32('Its number.', { minimum: 1, maximum: 65_535 }),
      },
    }),
    state: choice(
      'Offered: no policy here accepts it. Used: a home Service stands for it. Failed: accepted, but the ' +
        'home Service cannot be made. NotOffered: accepted, but the provider does not offer it.',
      ['Offered', 'Used', 'Failed', 'NotOffered'],
    ),
    homeNamespace: dnsLabel('Namespace of the home Service.'),
    homeName: dnsLabel('Name of the home Service.'),
    reason,
    message,
  }),
);

const status: Schema = objectOf<AdvertisementStatus>('What was decided, and the result here.', [], {
  observedGeneration,
  decision: choice('What was decided about the offer.', ['Accepted', 'Refused', 'Pending', 'Expired']),
  reason,
  message,
  policy: policyName,
  contract: signedContract('What both have agreed on.'),
  access: choice(
    'How the foreign API server is reached. Direct: at its own address. Link: through streams that we ' +
      'open. DialBack: through streams that the provider opens.',
    ['Direct', 'Link', 'DialBack'],
  ),
  credentialExpires: time('End of the token in use.'),
  virtualNodes: names('VirtualNodes made from it.', 'Name of a VirtualNode.', 256),
  services,
  conditions: conditions(Object.values(ADVERTISEMENT_CONDITIONS).join(', ')),
});

export const advertisementDefinition: Definition = {
  type: advertisements,
  shortNames: ['adv'],
  columns: [
    column('Provider', '.spec.clusterName', 'The name that the provider gives itself.'),
    column('Decision', '.status.decision', 'What was decided.'),
    column('Reason', '.status.reason', 'Why.'),
    column('CPU', '.spec.offer.resources.cpu', 'CPU that is offered.'),
    column('Memory', '.spec.offer.resources.memory', 'Memory that is offered.'),
    column('Access', '.status.access', 'How the foreign API server is reached.'),
    AGE,
    column('Policy', '.status.policy', 'AcceptancePolicy that decided.', { priority: 1 }),
    column('Expires', '.spec.offer.expires', 'When the offer ends.', { priority: 1 }),
  ],
  schema: {
    ...wholeOf('What a provider offers us. Made by Tributary; a person approves or denies.', {
      spec,
      status,
    }),
    'x-kubernetes-validations': [
      { rule: 'self.metadata.name == self.spec.clusterID', message: 'the name must be the clusterID' },
      {
        rule: 'self.spec.offer.provider == self.spec.clusterID',
        message: 'the offer must be one of this provider',
      },
    ],
  },
};
