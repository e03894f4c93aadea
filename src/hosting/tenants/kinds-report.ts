import type { ReflectableKind } from '../../api/reflection.ts';
import { complaintOf, nameOfKind, type KindsStanding } from '../policies/kinds.ts';

/** Whether a peer may bring all kinds that its policy names; undefined where it names none. */
export interface KindsReport {
  state: 'AsExpected' | 'KindRefused' | 'KindNotServed' | 'RightsMissing';
  message: string;
}

/** `problem`: why the rights could not be given; `uncounted`: kinds that no quota counts. Pure. */
export function kindsReport(
  standing: KindsStanding,
  problem: string | undefined,
  uncounted: readonly ReflectableKind[],
): KindsReport {
  const complaint = complaintOf(standing);
  const { granted, missing } = standing;
  // A quota cannot count kinds that are not served or are not in namespaces; their objects are refused.
  const unserved =
    uncounted.length === 0
      ? undefined
      : `${uncounted.map(nameOfKind).join(', ')}: no namespaced kind of that name is served here, or only since a moment ago`;
  if (complaint === undefined && problem === undefined && unserved === undefined) {
    return { state: 'AsExpected', message: `may bring ${granted.map(nameOfKind).join(', ')}` };
  }
  const message = [complaint, problem, unserved].filter((it) => it !== undefined).join('; ');
  if (problem !== undefined || missing.length > 0) return { state: 'RightsMissing', message };
  return { state: complaint === undefined ? 'KindNotServed' : 'KindRefused', message };
}
