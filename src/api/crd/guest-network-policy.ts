import {
  GUEST_POLICY_LIMITS as LIMITS,
  guestNetworkPolicies,
  type GuestNetworkPolicySpec,
  type GuestNetworkPolicyStatus,
  type GuestPods,
  type GuestPolicyPeer,
} from '../guest-network-policy.ts';
import { CIDR_PATTERN, MAX_CIDR_LENGTH, MAX_MESSAGE_LENGTH } from '../limits.ts';
import { type IpBlock, POLICY_TYPES, type PolicyPort } from '../network-policy.ts';
import { AGE, column, observedGeneration } from './common.ts';
import type { Definition } from './definition.ts';
import { uncheckedSelector } from './label-selector.ts';
import { choice, dnsLabel, int32, listOf, objectOf, setOf, wholeOf, type Schema } from './schema.ts';

const cidr = (description: string): Schema => ({
  type: 'string',
  description,
  maxLength: MAX_CIDR_LENGTH,
  pattern: CIDR_PATTERN,
});

const peer: Schema = {
  ...objectOf<GuestPolicyPeer>('Who is on the other side. Exactly one field is set.', [], {
    pods: objectOf<GuestPods>('Pods of the same home in this cluster.', ['podSelector'], {
      podSelector: uncheckedSelector('Selects pods by their labels; empty: all.'),
      homeNamespaces: setOf(
        'Names of namespaces at home. Without it: the namespace of this object.',
        LIMITS.namespaces,
        dnsLabel('Name of a namespace at home.'),
      ),
      everywhere: { type: 'boolean', description: 'In all namespaces of the home.' },
    }),
    ipBlock: objectOf<IpBlock>('Addresses as this cluster sees them.', ['cidr'], {
      cidr: cidr('The range.'),
      except: listOf('Ranges within it that do not belong to it.', LIMITS.excepts, cidr('A range.')),
    }),
    clusterDNS: {
      type: 'boolean',
      description: 'What resolves names for pods in this cluster. With egress only.',
    },
    cluster: {
      type: 'boolean',
      description:
        'Pods and nodes of this cluster itself, as far as it lets them reach pods of peers. With ingress only.',
    },
  }),
  minProperties: 1,
  maxProperties: 1,
};

const ports = listOf('Ports of the pods that listen; without it, all.', LIMITS.ports, {
  ...objectOf<PolicyPort>('One port.', [], {
    protocol: choice('Protocol.', ['TCP', 'UDP', 'SCTP'], 'TCP'),
    port: {
      description: 'Number, or the name of a port of the pod that listens.',
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      'x-kubernetes-int-or-string': true,
    },
    endPort: int32('Last port of a range that begins at `port`.', { minimum: 1, maximum: 65_535 }),
  }),
});

const peers = (description: string): Schema => listOf(description, LIMITS.peers, peer);

const spec: Schema = objectOf<GuestNetworkPolicySpec>('What the home says.', ['podSelector', 'policyTypes'], {
  podSelector: uncheckedSelector('Pods of this namespace that the policy is about; empty: all.'),
  policyTypes: setOf(
    'Directions in which those pods are closed but for the rules.',
    2,
    choice('A direction.', POLICY_TYPES),
  ),
  ingress: listOf(
    'Who may reach the pods.',
    LIMITS.rules,
    objectOf<NonNullable<GuestNetworkPolicySpec['ingress']>[number]>('One rule.', [], {
      from: peers('Who may; without it, everybody whom this cluster lets reach pods of peers.'),
      ports,
    }),
  ),
  egress: listOf(
    'Whom the pods may reach.',
    LIMITS.rules,
    objectOf<NonNullable<GuestNetworkPolicySpec['egress']>[number]>('One rule.', [], {
      to: peers('Whom; without it, everybody whom this cluster lets pods of peers reach.'),
      ports,
    }),
  ),
});

const status: Schema = objectOf<GuestNetworkPolicyStatus>('What this cluster has made of it.', [], {
  observedGeneration,
  closed: listOf('What this cluster does not allow its guests, and so stays closed.', LIMITS.closed, {
    type: 'string',
    description: 'Rule and cause.',
    maxLength: MAX_MESSAGE_LENGTH,
  }),
});

export const guestNetworkPolicyDefinition: Definition = {
  type: guestNetworkPolicies,
  shortNames: ['gnp'],
  columns: [
    column('Generation', '.metadata.generation', 'What the home says last.', { type: 'integer' }),
    column('In-Force', '.status.observedGeneration', 'The generation that is in force.', { type: 'integer' }),
    column('Closed', '.status.closed[0]', 'What this cluster does not allow, the first of it.'),
    AGE,
  ],
  schema: wholeOf(
    'A NetworkPolicy of a home that runs pods here, in its tenant namespace. The role `cluster` makes a ' +
      'NetworkPolicy from it, of what it allows pods of peers. Only agents of the home write it.',
    { spec, status },
  ),
};
