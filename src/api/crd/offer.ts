import { MAX_CONTRACT_LENGTH, MAX_NAMESPACES, OFFER_LIMITS, SIGNATURE_PATTERN } from '../limits.ts';
import {
  POD_SECURITY_LEVELS,
  type NamespaceOffer,
  type NodeShape,
  type Offer,
  type ServiceClasses,
  type SignedContract,
  type StorageClassOffer,
  type WithheldNamespace,
} from '../offer.ts';
import { clusterID, labels, names, prices, resourceList, time } from './common.ts';
import { choice, dnsLabel, int32, int64, listOf, objectOf, type Schema } from './schema.ts';

export const signature = (description: string): Schema => ({
  type: 'string',
  description,
  maxLength: 88,
  pattern: SIGNATURE_PATTERN,
});

export const keepForSeconds = (description: string): Schema =>
  int64(description, { minimum: 0, maximum: OFFER_LIMITS.keepForSeconds });

export const podSecurity = (description: string): Schema => choice(description, POD_SECURITY_LEVELS);

export const namespaceOffers = (description: string): Schema =>
  listOf(
    description,
    MAX_NAMESPACES,
    objectOf<NamespaceOffer>(
      'Pods of the home namespace run in the tenant namespace.',
      ['homeNamespace', 'tenantNamespace'],
      {
        homeNamespace: dnsLabel('A namespace of the cluster that borrows.'),
        tenantNamespace: dnsLabel('The namespace that the cluster that lends has chosen for it.'),
      },
    ),
  );

export const withheldNamespaces = (description: string): Schema =>
  listOf(
    description,
    MAX_NAMESPACES,
    objectOf<WithheldNamespace>('One namespace.', ['homeNamespace', 'reason'], {
      homeNamespace: dnsLabel('A namespace of the cluster that borrows.'),
      reason: choice(
        'NameTaken: the name may become free later. NamingNotAllowed: the requested name is never given.',
        ['NameTaken', 'NamingNotAllowed'],
      ),
      ending: {
        type: 'boolean',
        description: 'What an earlier contract has left holds the name, and is ending: it is given soon.',
      },
      message: { type: 'string', description: 'The cause in a sentence; for people.', maxLength: 1024 },
    }),
  );

const shape: Schema = objectOf<NodeShape>(
  'Nodes that look the same to a scheduler.',
  ['count', 'resources', 'architecture', 'operatingSystem'],
  {
    count: int32('Number of such nodes.', { minimum: 1, maximum: OFFER_LIMITS.count }),
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
  },
);

const storageClass: Schema = objectOf<StorageClassOffer>(
  'A StorageClass of the provider.',
  ['name', 'provisioner'],
  {
    name: { type: 'string', description: 'Name of the class.', minLength: 1, maxLength: 253 },
    provisioner: { type: 'string', description: 'Which driver makes the volumes.', maxLength: 253 },
    isDefault: { type: 'boolean', description: "Whether it is the provider's default class." },
    volumeBindingMode: {
      type: 'string',
      description: 'When volumes are bound: Immediate or WaitForFirstConsumer.',
      maxLength: 63,
    },
    allowVolumeExpansion: { type: 'boolean', description: 'Whether volumes can grow.' },
  },
);

const classes: Schema = objectOf<ServiceClasses>(
  'Storage, ingress, load balancers and priorities that the provider offers.',
  [],
  {
    storage: listOf('Storage classes that may be used.', OFFER_LIMITS.storageClasses, storageClass),
    ingress: names('Ingress classes that may be used.', 'Name of a class.', OFFER_LIMITS.ingressClasses),
    loadBalancer: names(
      'Load-balancer classes that may be used.',
      'Name of a class.',
      OFFER_LIMITS.loadBalancerClasses,
    ),
    priority: names(
      'Priority classes that pods may name.',
      'Name of a PriorityClass.',
      OFFER_LIMITS.priorityClasses,
    ),
  },
);

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
export const offer = (description: string): Schema =>
  objectOf<Offer>(description, ALWAYS_SAID, {
    provider: clusterID('ClusterID of the provider.'),
    consumer: clusterID('ClusterID of the consumer.'),
    generation: int64(
      'Grows with every offer of this provider to this consumer; an offer with a lower number is refused as ' +
        'a replay.',
      { minimum: 0 },
    ),
    issued: time('When the offer was made.'),
    expires: time('When the offer ends; it is renewed well before.'),
    resources: resourceList(
      'Everything that is lent: cpu, memory, pods, ephemeral-storage, storage (persistent), extended ' +
        'resources.',
    ),
    shapes: listOf('The nodes behind the offer; equal nodes are grouped.', OFFER_LIMITS.shapes, shape),
    classes,
    labels: labels('Labels for the virtual node.'),
    images: listOf('Images that some node already has, if the provider shares that.', OFFER_LIMITS.images, {
      type: 'string',
      description: 'Name of an image.',
      maxLength: OFFER_LIMITS.imageLength,
    }),
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
    defaultRequests: resourceList(
      'What a container that requests none of cpu, memory or ephemeral-storage is given. Without this field, the ' +
        'provider is of a version that gives 100m, 128Mi and 256Mi.',
    ),
    podOverhead: resourceList(
      'What each pod costs besides the requests of its containers, because of the runtime class that the provider sets.',
    ),
  });

export const signedContract = (description: string): Schema =>
  objectOf<SignedContract>(description, ['text'], {
    text: {
      type: 'string',
      description: 'What was signed, byte for byte: canonical JSON (RFC 8785).',
      maxLength: MAX_CONTRACT_LENGTH,
    },
    consumerSignature: signature('Signature of the cluster that borrows: Ed25519, base64.'),
    providerSignature: signature('Signature of the cluster that lends: Ed25519, base64.'),
  });
