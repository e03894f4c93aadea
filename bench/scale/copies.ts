/**
 * Copies of pods in pairs, as etcd stores them: the pod at home and its body over there. What one says of the other (names, UIDs,
 * addresses) is the same in both copies as it was in the pair that they are copies of, so that an agent finds nothing to do.
 */
import { randomUUID } from 'node:crypto';

import { LABEL_HOME_UID } from '../../src/api/names.ts';
import type { Pod } from '../../src/api/wire.ts';

export interface Pair {
  /** Both have the same name. */
  readonly name: string;
  readonly home: Pod;
  readonly foreign: Pod;
}

/** @throws if a pod at home has no body, or one of another name */
export function pairsOf(home: readonly Pod[], foreign: readonly Pod[]): Pair[] {
  const bodies = new Map(foreign.map((pod) => [pod.metadata.labels?.[LABEL_HOME_UID], pod]));
  return home.map((pod) => {
    const { name, uid } = pod.metadata;
    const body = bodies.get(uid);
    if (body?.metadata.name !== name) throw new Error(`pod ${name} has no body of that name over there`);
    return { name, home: pod, foreign: body };
  });
}

/** The values of both, as text; `number` is that of its address, and new for each. */
export function copyOf(pair: Pair, name: string, number: number): Record<'home' | 'foreign', string> {
  const { home, foreign } = pair;
  const replaced: [string, string][] = [
    [home.metadata.uid, randomUUID()],
    [foreign.metadata.uid, randomUUID()],
    [pair.name, name],
  ];
  const { podIP } = foreign.status ?? {};
  const renamed = (pod: Pod): string => {
    const text = replaced.reduce((all, [from, to]) => all.replaceAll(from, to), JSON.stringify(pod));
    return podIP === undefined ? text : text.replaceAll(wholeAddress(podIP), addressOf(number));
  };
  return { home: renamed(home), foreign: renamed(foreign) };
}

/** An address may be the beginning of another one. */
const wholeAddress = (address: string): RegExp =>
  new RegExp(`(?<![\\d.])${RegExp.escape(address)}(?![\\d.])`, 'gu');

const addressOf = (number: number): string =>
  `10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
