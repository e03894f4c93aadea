/** Which side opened a link. */
export type Dialler = 'Us' | 'Them';

/**
 * A second link to the same peer has come up: does it take the place of the first one at once, or only if that one
 * does not answer? Of two simultaneous ones the one dialled by the lower ClusterID stays, and both ends come to the
 * same answer whichever of the two they saw first. A second one from the same side may mean that this side knows
 * the first to be dead, or that somebody delayed an old attempt: only a ping tells.
 */
export function contest(
  first: Dialler,
  second: Dialler,
  { own, peer }: { own: string; peer: string },
): 'replace' | 'probe' {
  const lower: Dialler = own < peer ? 'Us' : 'Them';
  return first !== second && second === lower ? 'replace' : 'probe';
}
