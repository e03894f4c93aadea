import { CAUSE_WRITE_BUDGET } from '../../api/admission.ts';
import { OFFLOADED_REASONS, type OffloadedReason } from '../../api/names.ts';
import { errorCode, errorMessage, type TributaryError } from '../../lib/errors.ts';
import { isForRoom } from '../forge/applied.ts';

export interface Refusal {
  reason: OffloadedReason;
  message: string;
  /** It passes: when to come again. */
  retryAfterMs?: number;
}

/** @param what the object, such as `pod "web"` */
export const nameTaken = (what: string): Refusal => ({
  reason: OFFLOADED_REASONS.nameTaken,
  message: `${what} exists in the tenant namespace and is not ours`,
});

/** What of a SharingPolicy speaks from a refusal: Pod Security by its form, our own admission policies by the annotations they read. */
const FIELDS: readonly [said: RegExp, field: string][] = [
  [/violates PodSecurity "/u, 'podSecurity'],
  [/tributary\.dev\/runtime-class\b/u, 'runtimeClassName'],
  [/tributary\.dev\/node-selector\b/u, 'nodeSelector'],
  [/tributary\.dev\/max-priority\b/u, 'maxPriority'],
  [/tributary\.dev\/extended-resources\b/u, 'limits'],
  [/tributary\.dev\/storage-classes\b/u, 'storageClasses'],
];

/** Adds which field of which SharingPolicy of the provider refuses, where the provider's words tell. */
export function withPolicy(refusal: Refusal, sharingPolicy: string | undefined): Refusal {
  const [, field] = FIELDS.find(([said]) => said.test(refusal.message)) ?? [];
  if (field === undefined || sharingPolicy === undefined) return refusal;
  return {
    ...refusal,
    message: `${refusal.message} (${field} of the provider's SharingPolicy "${sharingPolicy}")`,
  };
}

/**
 * The foreign cluster's answer to a creation, as a refusal in its own words; undefined for errors that pass with time.
 * Quota is the one refusal that Kubernetes tells apart by text alone (plugin/pkg/admission/resourcequota), and only the
 * reason shown to people depends on it.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  const message = errorMessage(error);
  switch (errorCode(error)) {
    case 'Forbidden':
      return {
        reason: isForRoom(message) ? OFFLOADED_REASONS.exceededQuota : OFFLOADED_REASONS.forbidden,
        message,
      };
    case 'Invalid':
      return { reason: OFFLOADED_REASONS.invalid, message };
    case 'NotFound':
      return { reason: OFFLOADED_REASONS.tenantNamespace, message };
    case 'TooManyRequests': {
      const { causes = [], retryAfterMs = 1000 } = error as TributaryError;
      // Without that cause, the API server itself has too much to do.
      if (!causes.some(({ reason }) => reason === CAUSE_WRITE_BUDGET)) return undefined;
      return { reason: OFFLOADED_REASONS.writesTooMuch, message, retryAfterMs };
    }
    case 'Unavailable':
      // A required webhook over there does not answer (status 500): that may last, and the pod's owner should know.
      return message.includes('failed calling webhook')
        ? { reason: OFFLOADED_REASONS.forbidden, message }
        : undefined;
    default:
      return undefined;
  }
}

/**
 * What the owner of a pod should know, since it cannot be looked after until somebody else has mended it: a right that is missing over there, an
 * etcd that is full, a webhook that does not answer. API servers tell the last two by text alone, with the status 500.
 */
export function failureToTell(error: unknown): 'ForeignAccessDenied' | 'ForeignWriteFailed' | undefined {
  const code = errorCode(error);
  if (code === 'Forbidden') return 'ForeignAccessDenied';
  const isLasting = /database space exceeded|failed calling webhook/u.test(errorMessage(error));
  return code === 'Unavailable' && isLasting ? 'ForeignWriteFailed' : undefined;
}
