import type { Admission } from '../../api/admission.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import { costOf, costOfClaim } from './cost.ts';
import type { Ledger } from './ledger.ts';
import { debugPatch, placementOf, placementPatch } from './placement.ts';
import type { GuestTenant, TenantDirectory } from './tenant-directory.ts';

/** A pod that is created in a tenant namespace, is resized, or gets an ephemeral container. */
interface Guest {
  namespace: string;
  pod: Pod;
  before?: Pod;
  about: 'Create' | 'Resize' | 'Debug';
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
    const { annotations } = this.#tenantOf(namespace);
    return refusing(() => {
      const placement = placementOf(annotations);
      const patch = about === 'Create' ? placementPatch(pod, placement) : debugPatch(pod, before, placement);
      return { patch, warnings: [] };
    });
  }

  /** Throws Unavailable where the answer cannot be known now. */
  charge({ namespace, pod, about, isDryRun }: Guest): Admission {
    const { ledger } = this.#options;
    const { peer, isByContract } = this.#tenantOf(namespace);
    const refusal = about === 'Resize' ? undefined : tooLarge(pod);
    if (refusal !== undefined) return answer(refusal);
    // An ephemeral container has no requests (KEP-277).
    if (about === 'Debug') return AS_IT_IS;
    // For namespaces that people have made, nobody says what the peer gets over all of them; each has its own quota.
    if (!isByContract) return AS_IT_IS;
    const isNew = about === 'Create';
    return refusing(() => {
      const { name, uid } = pod.metadata;
      return answer(ledger.ask({ peer, namespace, name, uid, cost: costOf(pod), isNew, isDryRun }));
    });
  }

  /** A quota bounds one namespace, and a peer with many would get its storage many times. Throws Unavailable as `charge`. */
  chargeClaim({ namespace, claim, isDryRun }: GuestClaim): Admission {
    const { peer, isByContract } = this.#tenantOf(namespace);
    if (!isByContract) return AS_IT_IS;
    return refusing(() => {
      const { name, uid } = claim.metadata;
      const cost = costOfClaim(claim);
      return answer(this.#options.storage.ask({ peer, namespace, name, uid, cost, isNew: true, isDryRun }));
    });
  }

  #tenantOf(namespace: string): GuestTenant {
    const tenant = this.#options.tenants.tenantOf(namespace);
    if (tenant !== undefined) return tenant;
    throw new TributaryError('Unavailable', `namespace ${namespace} is not known to be a peer's`);
  }
}

/** Of JSON, far above any honest use. An API server takes 1.5 MB a pod, and a thousand of those would fill its store. */
const MOST_BYTES = 256 * 1024;

function tooLarge(pod: Pod): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(pod));
  if (bytes <= MOST_BYTES) return undefined;
  return `pods of peers are of ${MOST_BYTES} bytes at most, this one is of ${bytes}`;
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
