import type { AttackBed } from './bed.ts';

/** What an attacker has done, by what the row in the report is called: requests, refused, bytes. */
export type Counts = Record<string, number>;

/** Somebody hostile. It is told when to begin and when to rest; whatever it does, it does through doors that are open to it. */
export interface Attack {
  /** As `--attack` names it. */
  readonly name: string;
  /** One line: who attacks, and how. */
  readonly what: string;
  /** Whether it is a cluster that lends, with an API server of its own. */
  readonly needsProvider?: boolean;
  /** What it needs before it begins, such as a contract. */
  prepare(bed: AttackBed): Promise<void>;
  /** Attacks as fast as it can until the signal fires. Called once for each phase. Throws only for a fault of the bench. */
  run(signal: AbortSignal): Promise<void>;
  /** Since `prepare`. */
  counts(): Counts;
  /** Closes what it holds. */
  stop(): Promise<void>;
}
