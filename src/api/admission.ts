import type * as models from '@kubernetes/client-node';

import { clusterScoped, type persistentVolumeClaims, type ResourceType } from './resources.ts';
import type { Pod, Stored, Wire } from './wire.ts';

export type MutatingWebhookConfiguration = Stored<models.V1MutatingWebhookConfiguration>;
export type MutatingWebhook = Wire<models.V1MutatingWebhook>;

export const mutatingWebhookConfigurations: ResourceType<MutatingWebhookConfiguration> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'MutatingWebhookConfiguration',
);

type ValidatingWebhookConfiguration = Stored<models.V1ValidatingWebhookConfiguration>;
export type ValidatingWebhook = Wire<models.V1ValidatingWebhook>;

export const validatingWebhookConfigurations: ResourceType<ValidatingWebhookConfiguration> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'ValidatingWebhookConfiguration',
);

/** Name of the MutatingWebhookConfiguration for the home side: pods of offloaded namespaces. */
export const WEBHOOK_CONFIGURATION = 'tributary';
/** Name of both configurations for the provider's side: pods in tenant namespaces. */
export const GUESTS_CONFIGURATION = 'tributary-guests';
/** Name of the Service in front of the webhook, and of the Secret with its certificates. */
export const WEBHOOK_SERVICE = 'tributary-webhook';
/** On which the program listens; the Service's own is 443. */
export const WEBHOOK_PORT = 9443;
export const WEBHOOK_PATH = '/mutate-pods';

/** Cause in the details of a refusal (status 429) that says: a budget of writes is spent. */
export const CAUSE_WRITE_BUDGET = 'WriteBudgetSpent';

/** One operation of a JSON Patch (RFC 6902). */
export interface JsonPatchOperation {
  op: 'add';
  path: string;
  value: unknown;
}

/** What is done to an object that comes. */
export interface Admission {
  /** Why the object is refused; undefined: it is admitted. */
  refusal?: string;
  /** The refusal passes with time: whoever asks is to come again after so long. Without it, the refusal is for good. */
  retryAfterSeconds?: number;
  /** Empty: it stays as it is. */
  patch: JsonPatchOperation[];
  /** For whoever makes the object; kubectl shows them. */
  warnings: string[];
}

/** What an API server asks about a pod. */
export interface Question {
  namespace: string;
  pod: Pod;
  /** As it was, where it was there already. */
  before?: Pod;
  /**
   * `Create`: it is new. `Resize`: its requests are to change (KEP-1287, subresource `resize`). `Debug`: a container is put into it
   * (KEP-277, subresource `ephemeralcontainers`). `Change`: anything else of it is to change. The pod is as it would be.
   */
  about: 'Create' | 'Resize' | 'Debug' | 'Change';
  /** Nothing of it will be stored. */
  isDryRun: boolean;
}

/** What an API server asks about a new PersistentVolumeClaim. */
export interface ClaimQuestion {
  namespace: string;
  claim: Claim;
  isDryRun: boolean;
}

/** What an API server asks about any write. */
export interface WriteQuestion {
  namespace: string;
  /** API group; empty for the core group. */
  group: string;
  /** Plural name. */
  resource: string;
  name: string;
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  /** As it would be; what is deleted, as it is. */
  object: object;
  /** Undefined for what is new. */
  oldObject: object | undefined;
  isDryRun: boolean;
}

type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;

/** One thing that API servers ask, at a path of its own. */
export interface Hook {
  path: string;
  /** Decides from caches, without waiting. If it throws, the answer is an error, and the failurePolicy decides. */
  decide?: (question: Question) => Admission;
  /** Without it, no opinion. */
  decideClaim?: (question: ClaimQuestion) => Admission;
  /** Where it is there, it alone is asked. */
  decideWrite?: (question: WriteQuestion) => Admission;
}
