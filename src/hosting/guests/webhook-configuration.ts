/** Webhooks over tenant namespaces, with all that an API server would fill in, so that they compare. */
import type { MutatingWebhook, ValidatingWebhook } from '../../api/admission.ts';
import { LABEL_PEER } from '../../api/names.ts';

export interface GuestWebhookFacts {
  /** Whether there is any tenant namespace. */
  hasTenants: boolean;
  clientConfig: MutatingWebhook['clientConfig'];
  /** PEM. */
  bundle: string;
}

/** What an API server waits for an answer, and so what an outage costs each pod. */
const TIMEOUT_SECONDS = 3;

/** In the order of the fields as API servers list them it does not matter: they are compared by value. */
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
 * Pure. Whoever makes a pod there: placement holds for all of them. `Ignore`, for what was not forced is refused by a
 * ValidatingAdmissionPolicy in the API server itself; and where nothing is to be forced, nobody has to wait for us.
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
 * Pure. `charged`: CEL, whose pods are asked about; our own controllers and people are not held up, whatever becomes of us.
 * `Fail`: nobody else knows the sum over all namespaces.
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
          // Whoever makes a claim: those of ephemeral volumes are made by a controller of this cluster.
          ...common(facts),
          name: 'storage.guests.tributary.dev',
          failurePolicy: 'Fail',
          rules: [asked('CREATE', 'persistentvolumeclaims')],
          sideEffects: 'NoneOnDryRun',
        },
      ]
    : [];
