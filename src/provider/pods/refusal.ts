import { OFFLOADED_REASONS } from '../../api/names.ts';
import type { OffloadedReason } from '../../api/names.ts';
import { errorCode, errorMessage } from '../../lib/errors.ts';

export interface Refusal {
  reason: OffloadedReason;
  message: string;
}

/**
 * The provider's answer to a creation, as a refusal in its own words; undefined for errors that time heals.
 * Quota is the one refusal that Kubernetes tells apart by text alone (plugin/pkg/admission/resourcequota), and only
 * the word shown to people hangs on it.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  const message = errorMessage(error);
  switch (errorCode(error)) {
    case 'Forbidden':
      return {
        reason: /exceeded quota/u.test(message)
          ? OFFLOADED_REASONS.exceededQuota
          : OFFLOADED_REASONS.forbidden,
        message,
      };
    case 'Invalid':
      return { reason: OFFLOADED_REASONS.invalid, message };
    case 'NotFound':
      return { reason: OFFLOADED_REASONS.tenantNamespace, message };
    case 'Unavailable':
      // A webhook over there that must be asked and does not answer (status 500): it may last, and its owner should know.
      return message.includes('failed calling webhook')
        ? { reason: OFFLOADED_REASONS.forbidden, message }
        : undefined;
    default:
      return undefined;
  }
}
