import type { Offer, SignedContract } from './offer.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { TransportProtocol } from './tunnel.ts';
import type { Condition, KubeObject } from './wire.ts';

export interface AdvertisementSpec {
  /** ClusterID of the provider; also the object's name. */
  clusterID: string;
  /** The name that it gives itself. */
  clusterName?: string;
  /** As received and checked. */
  offer: Offer;
  /** Base64 of the provider's Ed25519 signature over the canonical bytes of the offer. */
  signature: string;
  /** The decision of a person, if the policy is Manual. */
  approval?: 'Approved' | 'Denied';
}

export type OfferDecision = 'Accepted' | 'Refused' | 'Pending' | 'Expired';
/** Direct: dialled at its own address. Link: through a stream that we open. DialBack: through one that the provider opens. */
export type ApiServerAccess = 'Direct' | 'Link' | 'DialBack';

/**
 * Offered: nobody here has accepted it. Used: a home Service stands for it. Failed: accepted, but there can be none, see
 * `reason`. NotOffered: accepted, but the provider does not offer it (any more).
 */
export type ServiceState = 'Offered' | 'Used' | 'Failed' | 'NotOffered';

/** A Service that the provider offers, or that a policy here accepts. */
export interface ProviderServiceStatus {
  /** Over there. */
  namespace: string;
  name: string;
  ports?: { name?: string; protocol: TransportProtocol; port: number }[];
  state: ServiceState;
  /** The home Service, where a policy names one. */
  homeNamespace?: string;
  homeName?: string;
  /** One of SERVICE_REASONS. */
  reason?: string;
  message?: string;
}

export const SERVICE_REASONS = {
  nameTaken: 'NameTaken',
  noNamespace: 'HomeNamespaceNotFound',
  forbiddenNamespace: 'HomeNamespaceNotAllowed',
  refused: 'Refused',
  noNetwork: 'NoNetwork',
  tunnelDown: 'TunnelDown',
  linkDown: 'LinkDown',
  noEndpoints: 'NoEndpointsReady',
} as const;

export interface AdvertisementStatus {
  observedGeneration?: number;
  decision?: OfferDecision;
  reason?: string;
  message?: string;
  /** AcceptancePolicy that decided. */
  policy?: string;
  contract?: SignedContract;
  /** How the provider's API server is reached. */
  access?: ApiServerAccess;
  /** End of the token in use. */
  credentialExpires?: string;
  /** VirtualNodes made from it. */
  virtualNodes?: string[];
  /** Services that it offers, and those that are accepted; by namespace and name. */
  services?: ProviderServiceStatus[];
  conditions?: Condition[];
}

/** What a provider offers us. Made by Tributary; a person approves or denies. */
export interface Advertisement extends KubeObject {
  spec: AdvertisementSpec;
  status?: AdvertisementStatus;
}

export const advertisements: ResourceType<Advertisement> = clusterScoped(
  'tributary.dev/v1alpha1',
  'Advertisement',
);

export const ADVERTISEMENT_CONDITIONS = {
  /** The offer passes the policy. */
  accepted: 'Accepted',
  /** Both have signed. */
  contract: 'ContractSigned',
  /** A token of the provider is in the Secret and not about to expire. */
  credential: 'CredentialValid',
  /** VirtualNodes and agent are in place. */
  virtualNode: 'VirtualNodeReady',
} as const;

export const ADVERTISEMENT_REASONS = {
  ok: 'AsExpected',
  noPolicy: 'NoPolicyMatches',
  waitingForApproval: 'WaitingForApproval',
  deniedHere: 'DeniedHere',
  tooLittle: 'BelowMinimum',
  tooDear: 'PriceAboveMaximum',
  labelMissing: 'LabelMissing',
  expired: 'Expired',
  withdrawn: 'Withdrawn',
  waitingForProvider: 'WaitingForProvider',
  unreachable: 'ApiServerUnreachable',
  noLink: 'NoLink',
  settingUp: 'SettingUp',
  ending: 'Ending',
} as const;
