/** Admission over pods of peers in this cluster: where they may run, and what a peer may use in all. */
import { randomBytes } from 'node:crypto';

import {
  GUESTS_CONFIGURATION,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '../../api/admission.ts';
import { STORAGE } from '../../api/amounts.ts';
import { isAccount, isAccountOf } from '../../api/fence.ts';
import type { CountedPod } from '../../api/pod-requests.ts';
import type { AccountRef } from '../../api/rbac.ts';
import { defineResource, type ResourceType } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import { RESULT_GATE } from '../guardian/result.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { AdmissionPart, WebhookPlace } from '../../kube/webhook-configuration.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { GuestAdmission } from './admission.ts';
import { keepClaim } from './cost.ts';
import { Ledger, type LivePods } from './ledger.ts';
import type { TenantDirectory } from './tenant-directory.ts';
import {
  forgePlacementWebhooks,
  forgeQuotaWebhooks,
  type GuestWebhookFacts,
} from './webhook-configuration.ts';

interface GuestAdmissionOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  /** Of our guardian. */
  account: AccountRef;
  pods: LivePods;
  tenants: TenantDirectory;
}

const claims: ResourceType<CountedPod> = defineResource(
  '/v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  'Namespaced',
);

/**
 * CEL. Peers, and our guardian, which makes pods of peers anew: else a peer could have its pods made again in one namespace after
 * it has filled another. What bears a result never runs.
 */
const isCharged = (guardian: AccountRef): string =>
  `${isAccountOf(PEERS_NAMESPACE)} || (${isAccount(guardian)} && ` +
  `!object.spec.?schedulingGates.orValue([]).exists(g, g.name == '${RESULT_GATE}'))`;

const PLACEMENT_PATH = '/guests/placement';

/** For the leader. Pods and tenants must be known before its components start. */
export function guestAdmission({
  client,
  clock,
  log,
  pods,
  tenants,
  account,
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
  const admission = new GuestAdmission({ tenants, ledger, storage });
  // Whoever reaches the port may ask, and what is let in is reserved: only those who can read the configuration may do that.
  const quotaPath = `/guests/quota/${randomBytes(16).toString('hex')}`;
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
        wanted: () => forgeQuotaWebhooks(facts(place(quotaPath)), charged),
      },
    ],
    onChange: (listener) => tenants.onTenants(listener),
  };
}
