import type { ValidatingWebhook } from '../../api/admission.ts';
import { LABEL_PEER } from '../../api/names.ts';
import { webhookAt, type WebhookPlace } from '../../kube/webhook-configuration.ts';
import { BY_PEER } from '../policies/admission.ts';

export interface GuestWebhookFacts extends WebhookPlace {
  /** Whether there is any tenant namespace. */
  hasTenants: boolean;
}

/** How long an API server waits for an answer, and so how long an outage delays each write. */
const TIMEOUT_SECONDS = 3;
/** A heartbeat must not come late because of us. */
const HEARTBEAT_TIMEOUT_SECONDS = 1;

/** What all webhooks over tenant namespaces have in common. */
export const guestWebhook = (place: WebhookPlace): Omit<ValidatingWebhook, 'name' | 'sideEffects'> => ({
  ...webhookAt(place),
  namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'Exists' }] },
  timeoutSeconds: TIMEOUT_SECONDS,
});

const anything = (group: string, resource: string, operations: string[]): object => ({
  apiGroups: [group],
  apiVersions: ['*'],
  operations,
  resources: [resource],
  scope: 'Namespaced',
});

const LEASES = 'coordination.k8s.io';
const peers = { name: 'peers', expression: BY_PEER };

/** New pods are charged where it is decided whether there is room for them. */
const isOther =
  `request.resource.group != '${LEASES}' && !(request.resource.group == '' && ` +
  "request.resource.resource == 'pods' && request.operation == 'CREATE')";

/** An object that is deleted at once is not stored again. One that ends for a while is, each time that it is asked for. */
const isStoredAgain =
  'has(oldObject.metadata.deletionTimestamp) || ' +
  "(request.?options.?propagationPolicy.orValue('') in ['Foreground', 'Orphan']) || " +
  'request.?options.?orphanDependents.orValue(false) == true';

/** For whatever peers write themselves. `heartbeats`: where the Leases of homes are decided about. */
export const forgeWriteWebhooks = (
  facts: GuestWebhookFacts,
  heartbeats: GuestWebhookFacts,
): ValidatingWebhook[] =>
  facts.hasTenants
    ? [
        {
          // `Fail`, because nobody else knows what a peer has written.
          ...guestWebhook(facts),
          name: 'writes.guests.tributary.dev',
          failurePolicy: 'Fail',
          matchConditions: [peers, { name: 'not-elsewhere', expression: isOther }],
          rules: [anything('*', '*', ['CREATE', 'UPDATE'])],
          sideEffects: 'NoneOnDryRun',
        },
        {
          // `Ignore`, because a peer may end its objects while we are down.
          ...guestWebhook(facts),
          name: 'deletions.guests.tributary.dev',
          failurePolicy: 'Ignore',
          matchConditions: [peers, { name: 'stored-again', expression: isStoredAgain }],
          rules: [anything('*', '*', ['DELETE'])],
          sideEffects: 'NoneOnDryRun',
        },
        {
          // `Ignore`, because a home must not seem to be away while we are down.
          ...guestWebhook(heartbeats),
          name: 'heartbeats.guests.tributary.dev',
          failurePolicy: 'Ignore',
          matchConditions: [peers],
          rules: [anything(LEASES, 'leases', ['CREATE', 'UPDATE'])],
          timeoutSeconds: HEARTBEAT_TIMEOUT_SECONDS,
          sideEffects: 'NoneOnDryRun',
        },
      ]
    : [];
