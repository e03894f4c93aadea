/** Pieces of schema that several kinds share. */
import {
  CLUSTER_ID_PATTERN,
  CLUSTER_NAME_PATTERN,
  CURRENCY_PATTERN,
  ENDPOINT_PATTERN,
  LABEL_VALUE_PATTERN,
  MAX_CLUSTER_IDS,
  MAX_ENDPOINTS,
  MAX_ENDPOINT_LENGTH,
  MAX_LABELS,
  MAX_MESSAGE_LENGTH,
  MAX_NAMESPACES,
  MAX_QUANTITY_LENGTH,
  MAX_RESOURCES,
  PRICE_AMOUNT_PATTERN,
  QUANTITY_PATTERN,
  REASON_PATTERN,
} from '../limits.ts';
import type { FenceTerms } from '../cluster-mode.ts';
import type { DefaultRequests } from '../default-requests.ts';
import { PEERING_PHASES } from '../foreign-cluster.ts';
import type { Price } from '../offer.ts';
import type { SecretKeyRef } from '../peer-selector.ts';
import type { Toleration } from '../wire.ts';
import type { PrinterColumn } from './definition.ts';
import { choice, dnsLabel, dnsName, int32, int64, listOf, objectOf, setOf, type Schema } from './schema.ts';

export const quantity = (description: string): Schema => ({
  description,
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
  pattern: QUANTITY_PATTERN,
  maxLength: MAX_QUANTITY_LENGTH,
  minimum: 0,
});

/** Amounts by resource, each a Kubernetes quantity. */
export const resourceList = (description: string): Schema => ({
  type: 'object',
  description,
  maxProperties: MAX_RESOURCES,
  additionalProperties: quantity('A Kubernetes quantity, for example 4, 500m or 8Gi.'),
});

/** Amounts of those resources that a LimitRange gives to containers. */
export const defaultRequests = (description: string): Schema =>
  objectOf<DefaultRequests>(description, [], {
    cpu: quantity('CPU, for example 10m.'),
    memory: quantity('Memory, for example 16Mi.'),
    'ephemeral-storage': quantity('Disk of the node, for example 64Mi.'),
  });

/** Classes of this cluster, each with the foreign class that replaces it. */
export const classMap = (description: string, maxProperties: number): Schema => ({
  type: 'object',
  description,
  maxProperties,
  additionalProperties: dnsName('Class in the foreign cluster.'),
});

export const prices = (description: string): Schema => ({
  type: 'object',
  description,
  maxProperties: MAX_RESOURCES,
  additionalProperties: objectOf<Price>(
    'Price of one unit of the resource for one hour.',
    ['amount', 'currency'],
    {
      amount: {
        type: 'string',
        description:
          'Decimal amount for one unit and hour, for example 0.04; as text, so that nothing is rounded. A unit ' +
          'is a core, a GiB, or one piece of a resource that is counted in pieces.',
        pattern: PRICE_AMOUNT_PATTERN,
        maxLength: 22,
      },
      currency: {
        type: 'string',
        description:
          'ISO 4217, for example EUR, or any word of three to eight letters that both sides understand; eur is the same as EUR.',
        pattern: CURRENCY_PATTERN,
        maxLength: 8,
      },
    },
  ),
});

export const labels = (description: string, maxProperties: number = MAX_LABELS): Schema => ({
  type: 'object',
  description,
  maxProperties,
  additionalProperties: {
    type: 'string',
    description: 'Value of the label.',
    maxLength: 63,
    pattern: LABEL_VALUE_PATTERN,
  },
});

export const taintKey = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 1,
  maxLength: 317,
});

export const toleration: Schema = objectOf<Toleration>('As in a pod.', ['key'], {
  key: taintKey('Key of the taint.'),
  operator: choice('Default Equal.', ['Exists', 'Equal']),
  value: { type: 'string', description: 'Value of the taint, for Equal.', maxLength: 63 },
  effect: choice('Effect of the taint; without it, all effects.', [
    'NoSchedule',
    'PreferNoSchedule',
    'NoExecute',
  ]),
  tolerationSeconds: int64('For NoExecute: how long the taint is tolerated, in seconds.', { minimum: 0 }),
});

export const clusterID = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 26,
  maxLength: 26,
  pattern: CLUSTER_ID_PATTERN,
});

export const clusterIDs = (description: string): Schema =>
  setOf(description, MAX_CLUSTER_IDS, clusterID('A ClusterID.'));

export const clusterName = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 1,
  maxLength: 63,
  pattern: CLUSTER_NAME_PATTERN,
});

export const endpoint = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 3,
  maxLength: MAX_ENDPOINT_LENGTH,
  pattern: ENDPOINT_PATTERN,
});

export const endpoints = (description: string): Schema =>
  listOf(description, MAX_ENDPOINTS, endpoint('As host:port, with an IPv6 address in brackets.'));

export const homeNamespaces = (description: string): Schema =>
  setOf(description, MAX_NAMESPACES, dnsLabel('Name of a namespace.'));

/** Short names in a list without repetition, such as classes. */
export const names = (description: string, item: string, maxItems: number): Schema =>
  setOf(description, maxItems, { type: 'string', description: item, minLength: 1, maxLength: 253 });

export const secretKeyRef = (description: string, key: string): Schema =>
  objectOf<SecretKeyRef>(description, ['name'], {
    name: dnsName('Name of the Secret, in the namespace that Tributary runs in.'),
    key: {
      type: 'string',
      description: 'Key in the Secret.',
      default: key,
      minLength: 1,
      maxLength: 253,
      pattern: '^[-._a-zA-Z0-9]+$',
    },
  });

export const time = (description: string): Schema => ({ type: 'string', format: 'date-time', description });

export const fenceTerms = (description: string): Schema =>
  objectOf<FenceTerms>(description, ['afterSeconds', 'stopSeconds'], {
    afterSeconds: int32('When nothing was heard for so long, forwarded pods are stopped.', { minimum: 1 }),
    stopSeconds: int32('How long it may take to stop them.', { minimum: 1 }),
  });

export const taintEffect: Schema = choice(
  'Effect of the taint tributary.dev/virtual-node of the Node. NoSchedule (the default): pods that do not ' +
    'tolerate it are not placed here. PreferNoSchedule: the scheduler avoids the Node while others have room. None: ' +
    'the Node has no such taint, and the scheduler treats it as any other. With the last two, pods of namespaces ' +
    'that are not offloaded, and of DaemonSets, may be bound to the Node, where they do not run. The ' +
    'AcceptancePolicy of a peer decides for its VirtualNodes.',
  ['NoSchedule', 'PreferNoSchedule', 'None'],
);

export const precedence: Schema = int32(
  'If two policies apply to the same peer, the one with the higher number decides; if the numbers are ' +
    'equal, the older one.',
  { default: 0, minimum: -1_000_000, maximum: 1_000_000 },
);

/** A yes or no of a person; written into the spec, where it can be withdrawn. */
export const approval = (description: string): Schema => choice(description, ['Approved', 'Denied']);

export const observedGeneration: Schema = int64('The metadata.generation that this status describes.', {
  minimum: 0,
});

export const PHASES = 'None, Pending, Offered, Accepted, Established, Denied or Ending';
export const phase: Schema = choice(
  'None: nothing is wanted, or nobody has asked. Pending: asked, no decision yet. Offered: an offer ' +
    'waits for acceptance. Accepted: both have agreed, and the peering is being set up. Established: in ' +
    'use. Denied: the deciding side refused. Ending: being taken down.',
  PEERING_PHASES,
);

export const reason: Schema = {
  type: 'string',
  description: 'The cause in one word, from a closed list; for programs.',
  minLength: 1,
  maxLength: 64,
  pattern: REASON_PATTERN,
};

export const message: Schema = {
  type: 'string',
  description: 'The cause in a sentence; for people.',
  maxLength: MAX_MESSAGE_LENGTH,
};

export const policyName: Schema = {
  type: 'string',
  description: 'Name of the policy that decided.',
  maxLength: 253,
};

export const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Age of the object.',
};

/** `kubectl get` on one status field. */
export const column = (
  name: string,
  jsonPath: string,
  description: string,
  more: Partial<Pick<PrinterColumn, 'type' | 'priority'>> = {},
): PrinterColumn => ({ name, type: 'string', jsonPath, description, ...more });
