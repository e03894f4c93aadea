import { TributaryError } from '../lib/errors.ts';
import type { ResourceList } from './wire.ts';

/**
 * What two clusters say to each other about lending, as it is signed, sent and stored. What comes from a peer is checked
 * before it has one of these types (src/peering/offer/check.ts, src/peering/contract).
 */

/** A home namespace and the tenant namespace that the provider has chosen for it. */
export interface NamespaceOffer {
  homeNamespace: string;
  tenantNamespace: string;
}

/** A home namespace that has no tenant, and why. */
export interface WithheldNamespace {
  homeNamespace: string;
  /** NameTaken: it may be had later. NamingNotAllowed: never under the name that was asked for. */
  reason: 'NameTaken' | 'NamingNotAllowed';
  /** The name is held by what an earlier contract has left, which is ending: it is given soon, and nobody has to act. */
  ending?: boolean;
  message?: string;
}

/** Nodes of the provider that look the same to a scheduler. No pod larger than one of them runs anywhere. */
export interface NodeShape {
  /** How many such nodes there are. */
  count: number;
  /** Of one node: the share of what is free on it. */
  resources: ResourceList;
  architecture: string;
  operatingSystem: string;
  /** Zone, region, instance type, and what the SharingPolicy lets through. */
  labels?: Record<string, string>;
}

export interface StorageClassOffer {
  name: string;
  provisioner: string;
  /** The provider's default class. */
  isDefault?: boolean;
  /** When a volume is bound: `Immediate`, or `WaitForFirstConsumer`, that is when the first pod that uses it has a node. */
  volumeBindingMode?: string;
  /** Whether volumes can grow. */
  allowVolumeExpansion?: boolean;
}

export interface ServiceClasses {
  storage?: StorageClassOffer[];
  ingress?: string[];
  loadBalancer?: string[];
  /** PriorityClasses that pods may name. */
  priority?: string[];
}

export interface Price {
  /** Decimal amount per unit and hour, for example `0.04`. */
  amount: string;
  /** ISO 4217, or any word of three to eight letters that both sides understand. Upper and lower case are the same. */
  currency: string;
}

export type PodSecurityLevel = (typeof POD_SECURITY_LEVELS)[number];

/** The stricter one first. */
export const POD_SECURITY_LEVELS = ['restricted', 'baseline', 'privileged'] as const;

/** Signed by the provider, for one consumer. */
export interface Offer {
  /** ClusterID of the one who lends. */
  provider: string;
  /** ClusterID of the one it is for. */
  consumer: string;
  /** Grows with every offer of this provider to this consumer; an older one is a replay. */
  generation: number;
  /** RFC 3339, whole seconds. */
  issued: string;
  expires: string;
  /** In all: cpu, memory, pods, ephemeral-storage, `storage` (persistent), extended resources. */
  resources: ResourceList;
  shapes: NodeShape[];
  classes: ServiceClasses;
  /** For the virtual node. */
  labels: Record<string, string>;
  /** Images that some node holds already. */
  images: string[];
  /** By resource. */
  prices: Record<string, Price>;
  namespaces: NamespaceOffer[];
  podSecurity: PodSecurityLevel;
  /** How long pods outlive a home that does not come back. */
  keepForSeconds: number;
  /** `major.minor.patch` of the provider's Kubernetes. */
  kubernetesVersion?: string;
  /** Features of the runtime that all offered nodes declare (KEP-5328). */
  declaredFeatures?: string[];
  /** Requests of a container that names none. Missing: as before offers said so, UNTOLD_DEFAULT_REQUESTS. */
  defaultRequests?: ResourceList;
  /** What each pod costs beside the requests of its containers, since a runtime class is forced on it (KEP-688). */
  podOverhead?: ResourceList;
}

/** Both sides sign the canonical bytes (RFC 8785) of this. */
export interface Contract {
  provider: string;
  consumer: string;
  /** Of the offer that was accepted. */
  generation: number;
  issued: string;
  resources: ResourceList;
  namespaces: NamespaceOffer[];
  podSecurity: PodSecurityLevel;
  keepForSeconds: number;
  prices: Record<string, Price>;
}

/** A contract with what proves it. The text is what was signed, byte for byte. */
export interface SignedContract {
  /** Canonical JSON of a Contract. */
  text: string;
  /** Base64 of Ed25519 signatures over the text. */
  consumerSignature?: string;
  providerSignature?: string;
}

/** Each object of a cache is parsed once: the offer of every peer looks at every contract. */
const CONTRACTS = new WeakMap<SignedContract, Contract>();

/**
 * The contract of a status; it was checked before it was signed and stored. Throws Invalid where somebody has spoilt the
 * status since: to take that for no contract would end the tenant.
 */
export function contractOf(signed: SignedContract | undefined): Contract | undefined {
  if (signed === undefined) return undefined;
  const known = CONTRACTS.get(signed);
  if (known !== undefined) return known;
  try {
    const contract = JSON.parse(signed.text) as Contract;
    CONTRACTS.set(signed, contract);
    return contract;
  } catch (error) {
    throw new TributaryError('Invalid', 'the contract in the status of the PeeringRequest cannot be read', {
      cause: error,
    });
  }
}

/** As contractOf, for a reader that a spoilt status does not concern: it takes that for no contract. */
export function readableContractOf(signed: SignedContract | undefined): Contract | undefined {
  try {
    return contractOf(signed);
  } catch {
    return undefined;
  }
}
