import type { Attack } from './attack.ts';
import { DocumentsAttack } from './documents.ts';
import { GuestAttack } from './guest.ts';
import { HonestUse } from './honest.ts';
import { ProviderAttack } from './provider.ts';
import { StrangersAttack } from './strangers.ts';

/** All attackers, by name. Each run of the bench has one, on a cluster of its own. */
export const ATTACKS: readonly (() => Attack)[] = [
  () =>
    new GuestAttack('guest', 'a guest rewrites ConfigMaps, and waits where it is told to', {
      peers: 1,
      isPatient: true,
    }),
  () =>
    new GuestAttack('guests', 'four guests do so at the same time', {
      peers: 4,
      isPatient: true,
    }),
  () =>
    new GuestAttack('guest-flood', 'a guest rewrites ConfigMaps, and never waits', {
      peers: 1,
      isPatient: false,
    }),
  () => new StrangersAttack(),
  () => new DocumentsAttack(),
  () => new ProviderAttack(),
  () => new HonestUse(),
];
