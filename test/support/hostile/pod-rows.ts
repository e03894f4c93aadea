/** Rows that are pods: from a user at home, or from a peer that leaves its agent out. */
import { aPod, makes, type HostileRow } from './row.ts';

export const PODS = 'v1/pods';
export const SECURITY = 'violates PodSecurity';

export type Parts = Parameters<typeof aPod>[2];

/** From home: all of it travels. */
export const fromHome = (
  name: string,
  tries: string,
  reason: string,
  ...[spec, parts]: [object, Parts?]
): HostileRow => ({
  ...makes(PODS, name, tries, reason, aPod(`hostile-${name}`, spec, parts)),
  pod: true,
});
/** An honest agent never sends it; only a hostile peer does. */
export const direct = (
  name: string,
  tries: string,
  reason: string,
  ...[spec, parts]: [object, Parts?]
): HostileRow => makes(PODS, name, tries, reason, aPod(`hostile-${name}`, spec, parts));

export const secured = (securityContext: object): Parts => ({ container: { securityContext } });
export const volume = (source: object): object => ({ volumes: [{ name: 'v', ...source }] });
