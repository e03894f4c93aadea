import type { Admission } from '../../api/admission.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';

/** What an API server asks about a pod. */
export interface Question {
  namespace: string;
  pod: Pod;
  /**
   * `Create`: it is new. `Resize`: its requests are to change (KEP-1287, subresource `resize`). `Debug`: a container is put into it
   * (KEP-277, subresource `ephemeralcontainers`). The pod is as it would be.
   */
  about: 'Create' | 'Resize' | 'Debug';
  /** Nothing of it will be stored. */
  isDryRun: boolean;
}

/** What an API server asks about a new PersistentVolumeClaim. */
export interface ClaimQuestion {
  namespace: string;
  claim: Claim;
  isDryRun: boolean;
}

type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;

/** One thing that API servers ask, at a path of its own. */
export interface Hook {
  path: string;
  /** From caches, at once. What it throws is answered with an error, and the failurePolicy decides. */
  decide: (question: Question) => Admission;
  /** Without it, no opinion. */
  decideClaim?: (question: ClaimQuestion) => Admission;
}
