/** Webhooks over tenant namespaces. They set all fields that an API server would fill in, so that they compare as equal. */
import type { MutatingWebhook, ValidatingWebhook } from '../../api/admission.ts';
import { LABEL_PEER } from '../../api/names.ts';

export interface GuestWebhookFacts {
  /** Whether there is any tenant namespace. */
  hasTenants: boolean;
  clientConfig: MutatingWebhook['clientConfig'];
  /** PEM. */
  bundle: string;
}

/** How long an API server waits for an answer, and so how long an outage delays each pod. */
const TIMEOUT_SECONDS = 3;

const common = ({
  clientConfig,
  bundle,
}: GuestWebhookFacts): Omit<ValidatingWebhook, 'name' | 'sideEffects'> => ({
  admissionReviewVersions: ['v1'],
  clientConfig: { ...clientConfig, caBundle: Buffer.from(bundle).toString('base64') },
  matchPolicy: 'Equivalent',
  namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'Exists' }] },
  objectSelector: {},
  timeoutSeconds: TIMEOUT_SECONDS,
});

const asked = (operation: string, resource: string): object => ({
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: [operation],
  resources: [resource],
  scope: 'Namespaced',
});

/**
 * For whoever makes a pod there. `Ignore`, because a ValidatingAdmissionPolicy in the API server itself refuses a pod without
 * the placement (policies/placement.ts); and where no placement is asked for, nobody has to wait for us.
 */
export const forgePlacementWebhooks = (facts: GuestWebhookFacts): MutatingWebhook[] =>
  facts.hasTenants
    ? [
        {
          ...common(facts),
          name: 'placement.guests.tributary.dev',
          failurePolicy: 'Ignore',
          // Another webhook may add to the pod after us.
          reinvocationPolicy: 'IfNeeded',
          rules: [asked('CREATE', 'pods')],
          sideEffects: 'None',
        },
      ]
    : [];

/**
 * `charged`: CEL, whose pods are asked about; so our own controllers and people are not held up when we are down. `Fail`,
 * because nobody else knows the sum over all namespaces.
 */
export const forgeQuotaWebhooks = (facts: GuestWebhookFacts, charged: string): ValidatingWebhook[] =>
  facts.hasTenants
    ? [
        {
          ...common(facts),
          name: 'quota.guests.tributary.dev',
          failurePolicy: 'Fail',
          matchConditions: [{ name: 'charged', expression: charged }],
          rules: [
            asked('CREATE', 'pods'),
            asked('UPDATE', 'pods/resize'),
            asked('UPDATE', 'pods/ephemeralcontainers'),
          ],
          sideEffects: 'NoneOnDryRun',
        },
        {
          // For whoever makes a claim: a controller of this cluster makes those of ephemeral volumes.
          ...common(facts),
          name: 'storage.guests.tributary.dev',
          failurePolicy: 'Fail',
          rules: [asked('CREATE', 'persistentvolumeclaims')],
          sideEffects: 'NoneOnDryRun',
        },
      ]
    : [];
