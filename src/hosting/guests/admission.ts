import type { Admission, Question } from '../../api/admission.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import { costOf, costOfClaim } from './cost.ts';
import type { Ledger } from './ledger.ts';
import { changePatch, debugPatch, placementOf, placementPatch } from './placement.ts';
import { type GuestTenant, knownTenant, type TenantDirectory } from './tenant-directory.ts';
import type { GuestWrites } from './writes.ts';

/** A pod that is created in a tenant namespace, or changes there. */
interface Guest {
  namespace: string;
  pod: Pod;
  before?: Pod;
  about: Question['about'];
  isDryRun: boolean;
}

/** A claim that is created in a tenant namespace. */
interface GuestClaim {
  namespace: string;
  claim: NonNullable<(typeof persistentVolumeClaims)['__object']>;
  isDryRun: boolean;
}

interface GuestAdmissionOptions {
  tenants: Pick<TenantDirectory, 'tenantOf'>;
  ledger: Pick<Ledger, 'ask'>;
  /** The ledger of storage. */
  storage: Pick<Ledger, 'ask'>;
  writes: Pick<GuestWrites, 'pod'>;
}

const AS_IT_IS: Admission = { patch: [], warnings: [] };
const answer = (refusal: string | undefined): Admission =>
  refusal === undefined ? AS_IT_IS : { ...AS_IT_IS, refusal };

/** Admission of pods and claims into tenant namespaces: where pods may run, and whether there is room. */
export class GuestAdmission {
  readonly #options: GuestAdmissionOptions;

  constructor(options: GuestAdmissionOptions) {
    this.#options = options;
  }

  /** Throws Unavailable where the namespace is not known yet. */
  place({ namespace, pod, about, before }: Guest): Admission {
    if (about === 'Resize') return AS_IT_IS;
    const { annotations, peer } = knownTenant(this.#options.tenants, namespace);
    return refusing(() => {
      const placement = placementOf(annotations);
      if (about === 'Create') return { patch: placementPatch(pod, placement, peer), warnings: [] };
      const forge = about === 'Debug' ? debugPatch : changePatch;
      return { patch: forge(pod, before, placement), warnings: [] };
    });
  }

  /** Throws Unavailable where the answer cannot be known now. */
  charge({ namespace, pod, about, isDryRun }: Guest): Admission {
    const tenant = knownTenant(this.#options.tenants, namespace);
    const isNew = about === 'Create';
    const room = this.#roomFor(tenant, { namespace, pod, about, isDryRun });
    if (room.refusal !== undefined) return room;
    // What finds no room is not written, and costs nothing.
    return this.#options.writes.pod(tenant, { pod, namespace, isNew, isDryRun }) ?? AS_IT_IS;
  }

  #roomFor({ peer, isByContract }: GuestTenant, { namespace, pod, about, isDryRun }: Guest): Admission {
    // An ephemeral container has no requests (KEP-277).
    if (about === 'Debug') return AS_IT_IS;
    // For namespaces that people have made, nobody says what the peer gets over all of them; each has its own quota.
    if (!isByContract) return AS_IT_IS;
    const isNew = about === 'Create';
    return refusing(() => {
      const { name, uid } = pod.metadata;
      const { ledger } = this.#options;
      return answer(ledger.ask({ peer, namespace, name, uid, cost: costOf(pod), isNew, isDryRun }));
    });
  }

  /** A quota bounds one namespace, and a peer with many would get its storage many times. Throws Unavailable as `charge`. */
  chargeClaim({ namespace, claim, isDryRun }: GuestClaim): Admission {
    const { peer, isByContract } = knownTenant(this.#options.tenants, namespace);
    if (!isByContract) return AS_IT_IS;
    return refusing(() => {
      const { name, uid } = claim.metadata;
      const cost = costOfClaim(claim);
      return answer(this.#options.storage.ask({ peer, namespace, name, uid, cost, isNew: true, isDryRun }));
    });
  }
}

/** Refuses what is Invalid, with the reason. */
function refusing(decide: () => Admission): Admission {
  try {
    return decide();
  } catch (error) {
    if (hasCode(error, 'Invalid')) return answer(errorMessage(error));
    throw error;
  }
}
