import type { Admission } from '../../api/admission.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import { costOf, costOfClaim } from './cost.ts';
import type { Entry, Ledger } from './ledger.ts';
import { placementOf, placementPatch } from './placement.ts';
import type { GuestTenant, TenantDirectory } from './tenant-directory.ts';

/** A pod that comes to a tenant namespace, is to cost more, or gets a container to look into it. */
export interface Guest {
  namespace: string;
  pod: Pod;
  about: 'Create' | 'Resize' | 'Debug';
  isDryRun: boolean;
}

/** A claim that comes to a tenant namespace. */
export interface GuestClaim {
  namespace: string;
  claim: NonNullable<(typeof persistentVolumeClaims)['__object']>;
  isDryRun: boolean;
}

export interface GuestAdmissionOptions {
  tenants: Pick<TenantDirectory, 'tenantOf'>;
  ledger: Pick<Ledger, 'ask'>;
  /** Of storage. */
  storage: Pick<Ledger, 'ask'>;
}

const AS_IT_IS: Admission = { patch: [], warnings: [] };

/** What becomes of pods in tenant namespaces when they come: where they may run, and whether there is room. */
export class GuestAdmission {
  readonly #options: GuestAdmissionOptions;

  constructor(options: GuestAdmissionOptions) {
    this.#options = options;
  }

  /** Throws Unavailable where the namespace is not known yet. */
  place({ namespace, pod, about }: Guest): Admission {
    if (about !== 'Create') return AS_IT_IS;
    const { annotations } = this.#tenantOf(namespace);
    return refusing(() => ({ patch: placementPatch(pod, placementOf(annotations)), warnings: [] }));
  }

  /** Throws Unavailable where it cannot be told now. */
  charge({ namespace, pod, about, isDryRun }: Guest): Admission {
    const { peer, isByContract } = this.#tenantOf(namespace);
    const refusal = about === 'Resize' ? undefined : tooLarge(pod);
    if (refusal !== undefined) return { ...AS_IT_IS, refusal };
    // An ephemeral container has no requests (KEP-277).
    if (about === 'Debug') return AS_IT_IS;
    // Nobody has said what a peer gets over all namespaces that people have made; each has its own quota.
    if (!isByContract) return AS_IT_IS;
    return refusing(() => {
      const { name, uid } = pod.metadata;
      const entry: Entry = {
        peer,
        namespace,
        name,
        uid,
        cost: costOf(pod),
        isNew: about === 'Create',
        isDryRun,
      };
      const refusal = this.#options.ledger.ask(entry);
      return refusal === undefined ? AS_IT_IS : { ...AS_IT_IS, refusal };
    });
  }

  /** Quotas are of namespaces; a peer with many would get its storage as many times. Throws Unavailable. */
  chargeClaim({ namespace, claim, isDryRun }: GuestClaim): Admission {
    const { peer, isByContract } = this.#tenantOf(namespace);
    if (!isByContract) return AS_IT_IS;
    return refusing(() => {
      const { name, uid } = claim.metadata;
      const cost = costOfClaim(claim);
      const refusal = this.#options.storage.ask({ peer, namespace, name, uid, cost, isNew: true, isDryRun });
      return refusal === undefined ? AS_IT_IS : { ...AS_IT_IS, refusal };
    });
  }

  #tenantOf(namespace: string): GuestTenant {
    const tenant = this.#options.tenants.tenantOf(namespace);
    if (tenant !== undefined) return tenant;
    throw new TributaryError('Unavailable', `namespace ${namespace} is not known to be a peer's`);
  }
}

/** Of JSON. Far above what anybody honest has; a thousand of 1.5 MB, which is all that an API server asks for, would fill its store. */
const MOST_BYTES = 256 * 1024;

function tooLarge(pod: Pod): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(pod));
  if (bytes <= MOST_BYTES) return undefined;
  return `pods of peers are of ${MOST_BYTES} bytes at most, this one is of ${bytes}`;
}

/** What can never be let in as it is, is refused for the reason. */
function refusing(decide: () => Admission): Admission {
  try {
    return decide();
  } catch (error) {
    if (hasCode(error, 'Invalid')) return { ...AS_IT_IS, refusal: errorMessage(error) };
    throw error;
  }
}
