/** Daemons of a lab as its journal knows them now, whoever started them. */
import { Daemon } from './daemon.ts';
import type { Journal } from './journal.ts';

/** By full name: `home/etcd`, `home-1/kubelet`. */
export function knownDaemons(journal: Journal): Map<string, Daemon> {
  return new Map(
    [...journal.read().daemons].map(([name, { spec, id }]) => [name, new Daemon(spec, journal, id)]),
  );
}

/** The node or cluster that a daemon belongs to. */
export const ownerOf = (daemon: string): string => daemon.split('/', 1)[0] ?? '';
