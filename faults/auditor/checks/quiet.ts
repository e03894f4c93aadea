/** I7: once all is settled, nobody writes our objects any more. Pure. */
import type { Violation } from '../violation.ts';

/** An object of ours, at one moment. */
export interface Written {
  readonly cluster: string;
  /** `pods shop/web-1`. */
  readonly name: string;
  /** Changes with each write that counts. */
  readonly mark: string;
}

const keyOf = ({ cluster, name }: Written): string => `${name} in ${cluster}`;

export function quietFaults(
  before: readonly Written[],
  after: readonly Written[],
  seconds: number,
): Violation[] {
  const old = new Map(before.map((one) => [keyOf(one), one.mark]));
  const now = new Map(after.map((one) => [keyOf(one), one.mark]));
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key): Violation[] => {
    const [was, is] = [old.get(key), now.get(key)];
    if (was === is) return [];
    const change =
      was === undefined ? 'was made' : is === undefined ? 'went' : `was written (${was}, now ${is})`;
    return [
      { invariant: 'I7', what: `${key} ${change} within ${seconds} s, though there was nothing to do` },
    ];
  });
}
