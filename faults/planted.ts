/** Mistakes that the suite must find: edits of the program, and by what each betrays itself. */
import type { Violation } from './auditor-process.ts';
import type { Edit } from './program.ts';

export interface PlantedBug {
  readonly name: string;
  readonly what: string;
  readonly edits: readonly Edit[];
  /** Whether a violation is what this mistake leads to. */
  readonly shows: (violation: Violation) => boolean;
}

export const PLANTED: readonly PlantedBug[] = [];
