/** I7: at the end, copies over there are what home has. Pure. */
import type { Violation } from '../violation.ts';

/** A ConfigMap or Secret that stands on both sides under one name; the remote one is ours. */
export interface Copy {
  readonly cluster: string;
  /** `configmaps tenant/settings`. */
  readonly name: string;
  readonly homeName: string;
  /** Hashes of the data. */
  readonly home: string;
  readonly remote: string;
  /** It cannot be changed: home says in an event that it stays as it was. */
  readonly isImmutable: boolean;
}

export const copyDifferences = (copies: readonly Copy[]): Violation[] =>
  copies
    .filter(({ home, remote, isImmutable }) => home !== remote && !isImmutable)
    .map(({ cluster, name, homeName, home, remote }) => ({
      invariant: 'I7',
      what: `${name} in ${cluster} has other data (hash ${remote}) than ${homeName} at home (hash ${home})`,
    }));
