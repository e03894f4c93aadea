import { MAX_CONTRACT_LENGTH, MAX_NAMESPACES, OFFER_LIMITS, SIGNATURE_PATTERN } from '../limits.ts';
import type {
  NamespaceOffer,
  NodeShape,
  Offer,
  ServiceClasses,
  SignedContract,
  StorageClassOffer,
  WithheldNamespace,
} from '../offer.ts';
import { clusterID, labels, names, prices, resourceList, time } from './common.ts';
import { dnsLabel, type Schema, type SchemaOf } from './schema.ts';

export const signature = (description: string): Schema => ({
  type: 'string',
  description,
  maxLength: 88,
  pattern: SIGNATURE_PATTERN,
});

export const keepForSeconds = (description: string): Schema => ({
  type: 'integer',
  format: 'int64',
  description,
  minimum: 0,
  maximum: OFFER_LIMITS.keepForSeconds,
});

export const podSecurity = (description: string): Schema => ({
  type: 'string',
  description,
  enum: ['baseline', 'restricted'],
});

export const namespaceOffers = (description: string): Schema => ({
  type: 'array',
  description,
  maxItems: MAX_NAMESPACES,
  'x-kubernetes-list-type': 'atomic',
  items: {
    type: 'object',
    description: 'Pods of the home namespace run in the tenant namespace.',
    required: ['homeNamespace', 'tenantNamespace'],
    properties: {
      homeNamespace: dnsLabel('A namespace of the cluster that borrows.'),
      tenantNamespace: dnsLabel('The namespace that the cluster that lends has chosen for it.'),
    } satisfies SchemaOf<NamespaceOffer>,
  },
});

export const withheldNamespaces = (description: string): Schema => ({
  type: 'array',
  description,
  maxItems: MAX_NAMESPACES,
  'x-kubernetes-list-type': 'atomic',
  items: {
    type: 'object',
    description: 'One namespace.',
    required: ['homeNamespace', 'reason'],
    properties: {
      homeNamespace: dnsLabel('A namespace of the cluster that borrows.'),
      reason: {
        type: 'string',
        description:
          'NameTaken: the name may become free later. NamingNotAllowed: the requested name is never given.',
        enum: ['NameTaken', 'NamingNotAllowed'],
      },
      message: { type: 'string', description: 'The cause in a sentence; for people.', maxLength: 1024 },
    } satisfies SchemaOf<WithheldNamespace>,
  },
});

const shape: Schema = {
  type: 'object',
  description: 'Nodes that look the same to a scheduler.',
  required: ['count', 'resources', 'architecture', 'operatingSystem'],
  properties: {
    count: {
      type: 'integer',
      format: 'int32',
      description: 'Number of such nodes.',
      minimum: 1,
      maximum: OFFER_LIMITS.count,
    },
    resources: resourceList('What is lent of one such node; a pod that requests more fits on none of them.'),
    architecture: {
      type: 'string',
      description: 'As in kubernetes.io/arch, for example amd64.',
      maxLength: 63,
    },
    operatingSystem: {
      type: 'string',
      description: 'As in kubernetes.io/os, for example linux.',
      maxLength: 63,
    },
    labels: labels(
      'Zone, region, instance type, and other labels that the provider shows.',
      OFFER_LIMITS.shapeLabels,
    ),
  } satisfies SchemaOf<NodeShape>,
};

const storageClass: Schema = {
  type: 'object',
  description: 'A StorageClass of the provider.',
  required: ['name', 'provisioner'],
  properties: {
    name: { type: 'string', description: 'Name of the class.', minLength: 1, maxLength: 253 },
    provisioner: { type: 'string', description: 'Which driver makes the volumes.', maxLength: 253 },
    isDefault: { type: 'boolean', description: "Whether it is the provider's default class." },
    volumeBindingMode: {
      type: 'string',
      description: 'When volumes are bound: Immediate or WaitForFirstConsumer.',
      maxLength: 63,
    },
    allowVolumeExpansion: { type: 'boolean', description: 'Whether volumes can grow.' },
  } satisfies SchemaOf<StorageClassOffer>,
};

const classes: Schema = {
  type: 'object',
  description: 'Storage, ingress and load balancers that the provider offers.',
  properties: {
    storage: {
      type: 'array',
      description: 'Storage classes that may be used.',
      maxItems: OFFER_LIMITS.storageClasses,
      'x-kubernetes-list-type': 'atomic',
      items: storageClass,
    },
    ingress: names('Ingress classes that may be used.', 'Name of a class.', OFFER_LIMITS.ingressClasses),
    loadBalancer: names(
      'Load-balancer classes that may be used.',
      'Name of a class.',
      OFFER_LIMITS.loadBalancerClasses,
    ),
  } satisfies SchemaOf<ServiceClasses>,
};

/** The rest is optional. */
const ALWAYS_SAID = [
  'provider',
  'consumer',
  'generation',
  'issued',
  'expires',
  'resources',
  'shapes',
  'classes',
  'labels',
  'images',
  'prices',
  'namespaces',
  'podSecurity',
  'keepForSeconds',
] as const satisfies readonly (keyof Offer)[];

/** What a provider has signed. Bounds are those of limits.ts, so that what was checked on the wire can be stored. */
export const offer = (description: string): Schema => ({
  type: 'object',
  description,
  required: ALWAYS_SAID,
  properties: {
    provider: clusterID('ClusterID of the provider.'),
    consumer: clusterID('ClusterID of the consumer.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description:
        'Grows with every offer of this provider to this consumer; an offer with a lower number is refused as ' +
        'a replay.',
      minimum: 0,
    },
    issued: time('When the offer was made.'),
    expires: time('When the offer ends; it is renewed well before.'),
    resources: resourceList(
      'Everything that is lent: cpu, memory, pods, ephemeral-storage, storage (persistent), extended ' +
        'resources.',
    ),
    shapes: {
      type: 'array',
      description: 'The nodes behind the offer; equal nodes are grouped.',
      maxItems: OFFER_LIMITS.shapes,
      'x-kubernetes-list-type': 'atomic',
      items: shape,
    },
    classes,
    labels: labels('Labels for the virtual node.'),
    images: {
      type: 'array',
      description: 'Images that some node already has, if the provider shares that.',
      maxItems: OFFER_LIMITS.images,
      'x-kubernetes-list-type': 'atomic',
      items: { type: 'string', description: 'Name of an image.', maxLength: OFFER_LIMITS.imageLength },
    },
    prices: prices('Prices by resource.'),
    namespaces: namespaceOffers('Namespaces that are made for the consumer.'),
    podSecurity: podSecurity('Pod Security level that pods must satisfy.'),
    keepForSeconds: keepForSeconds('How long pods are kept if their home is away, in seconds.'),
    kubernetesVersion: {
      type: 'string',
      description: "Version of the provider's Kubernetes, as major.minor.patch.",
      maxLength: 64,
    },
    declaredFeatures: names(
      'Features of the node runtime that all offered nodes declare (KEP-5328).',
      'Name of a feature.',
      OFFER_LIMITS.declaredFeatures,
    ),
  } satisfies SchemaOf<Offer>,
});

export const signedContract = (description: string): Schema => ({
  type: 'object',
  description,
  required: ['text'],
  properties: {
    text: {
      type: 'string',
      description: 'What was signed, byte for byte: canonical JSON (RFC 8785).',
      maxLength: MAX_CONTRACT_LENGTH,
    },
    consumerSignature: signature('Signature of the cluster that borrows: Ed25519, base64.'),
    providerSignature: signature('Signature of the cluster that lends: Ed25519, base64.'),
  } satisfies SchemaOf<SignedContract>,
});
