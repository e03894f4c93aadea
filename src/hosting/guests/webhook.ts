/** The webhook over tenant namespaces: where guests may run, and what a peer may use in all. */
import { randomBytes } from 'node:crypto';

import {
  GUESTS_CONFIGURATION,
  type MutatingWebhook,
  mutatingWebhookConfigurations,
  type ValidatingWebhook,
  validatingWebhookConfigurations,
} from '../../api/admission.ts';
import { STORAGE } from '../../api/amounts.ts';
import { isAccount, isAccountOf } from '../../api/fence.ts';
import type { CountedPod } from '../../api/pod-requests.ts';
import type { AccountRef } from '../../api/rbac.ts';
import { namespaced, type ResourceType } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import { RESULT_GATE } from '../guardian/result.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { type AdmissionPart, askedAbout, type WebhookPlace } from '../../kube/webhook-configuration.ts';
import { GuestAdmission } from './admission.ts';
import { keepClaim } from './cost.ts';
import { Ledger, type LivePods } from './ledger.ts';
import type { TenantDirectory } from './tenant-directory.ts';
import { forgeWriteWebhooks, type GuestWebhookFacts, guestWebhook } from './write-webhooks.ts';
import { GuestWrites } from './writes.ts';

interface GuestAdmissionOptions extends ClusterBasics {
  /** The account of our guardian. */
  account: AccountRef;
  pods: LivePods;
  tenants: TenantDirectory;
  /** A peer asks on and on for writes that are refused, and does not wait. */
  heedless: (peer: string, message: string) => void;
}

const claims: ResourceType<CountedPod> = namespaced('/v1', 'PersistentVolumeClaim');

/**
 * CEL: whose pods are charged. Those of peers, and of our guardian, which makes pods of peers anew: else a peer could have its pods
 * made again in one namespace after it has filled another. A pod that bears a result never runs, and is not charged.
 */
const isCharged = (guardian: AccountRef): string =>
  `${isAccountOf(PEERS_NAMESPACE)} || (${isAccount(guardian)} && ` +
  `!object.spec.?schedulingGates.orValue([]).exists(g, g.name == '${RESULT_GATE}'))`;

const PLACEMENT_PATH = '/guests/placement';

/** Runs in the leader. Pods and tenants must be known before its components start. */
export function guestAdmission({
  client,
  clock,
  log,
  pods,
  tenants,
  account,
  heedless,
}: GuestAdmissionOptions): AdmissionPart {
  const ledger = new Ledger({ clock, pods, tenants });
  const volumes = new Informer({ client, clock, log, type: claims, list: {}, transform: keepClaim });
  const storage = new Ledger({
    what: 'claims',
    clock,
    pods: volumes,
    tenants: {
      namespacesOf: (peer) => tenants.namespacesOf(peer),
      grantOf: (peer) => {
        const grant = tenants.grantOf(peer);
        return grant && { [STORAGE]: grant[STORAGE] ?? '0' };
      },
    },
  });
  const writes = new GuestWrites({ clock, tenants, ledger, heedless });
  const admission = new GuestAdmission({ tenants, ledger, storage, writes });
  const { quotaPath, writesPath, leasesPath } = secretPaths();
  const charged = isCharged(account);
  const facts = (place: WebhookPlace): GuestWebhookFacts => ({ ...place, hasTenants: tenants.hasTenants() });
  return {
    components: [ledger, volumes, storage],
    hooks: [
      { path: PLACEMENT_PATH, decide: (question) => admission.place(question) },
      {
        path: quotaPath,
        decide: (question) => admission.charge(question),
        decideClaim: (question) => admission.chargeClaim(question),
      },
      { path: writesPath, decideWrite: (question) => writes.decide(question) },
      { path: leasesPath, decideWrite: (question) => writes.heartbeat(question) },
    ],
    configurations: (place) => [
      {
        type: mutatingWebhookConfigurations,
        name: GUESTS_CONFIGURATION,
        wanted: () => forgePlacementWebhooks(facts(place(PLACEMENT_PATH))),
      },
      {
        type: validatingWebhookConfigurations,
        name: GUESTS_CONFIGURATION,
        wanted: () => [
          ...forgeQuotaWebhooks(facts(place(quotaPath)), charged),
          ...forgeWriteWebhooks(facts(place(writesPath)), facts(place(leasesPath))),
        ],
      },
    ],
    onChange: (listener) => tenants.onTenants(listener),
  };
}

/** A charge takes room, and whoever reaches the port may ask: so only those who can read the configuration know the paths. */
function secretPaths(): { quotaPath: string; writesPath: string; leasesPath: string } {
  const secret = randomBytes(16).toString('hex');
  const pathOf = (what: string): string => `/guests/${what}/${secret}`;
  return { quotaPath: pathOf('quota'), writesPath: pathOf('writes'), leasesPath: pathOf('leases') };
}

/**
 * For whoever makes a pod there. `Ignore`, because a ValidatingAdmissionPolicy in the API server itself refuses a pod without
 * the placement (policies/placement.ts); and where no placement is asked for, nobody has to wait for us.
 */
const forgePlacementWebhooks = (facts: GuestWebhookFacts): MutatingWebhook[] => {
  const placing = {
    ...guestWebhook(facts),
    failurePolicy: 'Ignore',
    // Another webhook may add to the pod after us.
    reinvocationPolicy: 'IfNeeded',
    sideEffects: 'None',
  } as const;
  const placement = {
    ...placing,
    name: 'placement.guests.tributary.dev',
    rules: [askedAbout('CREATE', 'pods'), askedAbout('UPDATE', 'pods/ephemeralcontainers')],
  };
  // Else the policy refuses the whole change, and the rest of it with it.
  const tolerations = {
    ...placing,
    name: 'tolerations.guests.tributary.dev',
    matchConditions: [{ name: 'tolerations', expression: hasOtherTolerations }],
    rules: [askedAbout('UPDATE', 'pods')],
  };
  return facts.hasTenants ? [placement, tolerations] : [];
};

const hasOtherTolerations = 'object.spec.?tolerations.orValue([]) != oldObject.spec.?tolerations.orValue([])';

/**
 * `charged`: CEL, whose pods are asked about; so our own controllers and people are not held up when we are down. `Fail`,
 * because nobody else knows the sum over all namespaces.
 */
const forgeQuotaWebhooks = (facts: GuestWebhookFacts, charged: string): ValidatingWebhook[] =>
  facts.hasTenants
    ? [
        {
          ...guestWebhook(facts),
          name: 'quota.guests.tributary.dev',
          failurePolicy: 'Fail',
          matchConditions: [{ name: 'charged', expression: charged }],
          rules: [
            askedAbout('CREATE', 'pods'),
            askedAbout('UPDATE', 'pods/resize'),
            askedAbout('UPDATE', 'pods/ephemeralcontainers'),
          ],
          sideEffects: 'NoneOnDryRun',
        },
        {
          // For whoever makes a claim: a controller of this cluster makes those of ephemeral volumes.
          ...guestWebhook(facts),
          name: 'storage.guests.tributary.dev',
          failurePolicy: 'Fail',
          rules: [askedAbout('CREATE', 'persistentvolumeclaims')],
          sideEffects: 'NoneOnDryRun',
        },
      ]
    : [];
