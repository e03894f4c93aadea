/** What the doctor says of one thing that it has looked at. */
import type { ReasonText } from '../api/reasons/text.ts';

/** Unknown: it could not be looked at, and `cameBack` says why. Warning: it works, but not as it could. */
export type Level = 'ok' | 'warning' | 'problem' | 'unknown';

export interface Finding {
  /** Which check; a closed list (CHECKS in examine.ts). */
  check: string;
  /** About what: a ForeignCluster, a VirtualNode, or this cluster. */
  subject: string;
  level: Level;
  /** What was looked at. */
  tried: string;
  cameBack: string;
  /** Absent where nothing is to be done. */
  remedy?: string;
  /** A command for a shell that does it, in this cluster. */
  run?: string;
}

export interface Said {
  tried: string;
  cameBack: string;
}

export interface Cure {
  remedy: string;
  run?: string;
}

/** What the list of reasons says of one, in the form of a remedy. */
export const remedyOf = ({ todo }: ReasonText): string =>
  todo.replace(/^[A-Z](?=[a-z ])/u, (letter) => letter.toLowerCase()).replace(/\.$/u, '');

/** The findings of one check. */
export class Findings {
  readonly #check: string;
  readonly #list: Finding[] = [];

  constructor(check: string) {
    this.#check = check;
  }

  ok(subject: string, said: Said): void {
    this.add(subject, 'ok', said);
  }

  warn(subject: string, said: Said, cure: Cure): void {
    this.add(subject, 'warning', said, cure);
  }

  problem(subject: string, said: Said, cure: Cure): void {
    this.add(subject, 'problem', said, cure);
  }

  unknown(subject: string, said: Said, cure?: Cure): void {
    this.add(subject, 'unknown', said, cure);
  }

  add(subject: string, level: Level, said: Said, cure?: Cure): void {
    this.#list.push({ check: this.#check, subject, level, ...said, ...cure });
  }

  all(): readonly Finding[] {
    return this.#list;
  }
}

/** The subject of what concerns no peer. */
export const THIS_CLUSTER = 'this cluster';

/** 0 where nothing is wrong, 1 where something is; what is only a warning, or unknown, is no failure. */
export const exitCodeOf = (findings: readonly Finding[]): 0 | 1 =>
  findings.some(({ level }) => level === 'problem') ? 1 : 0;
