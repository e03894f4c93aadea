/** What a check finds, and when. */

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10';

export interface Violation {
  readonly invariant: Invariant;
  /** Names, values and times. */
  readonly what: string;
}

/** An invariant that could not be judged, since something could not be read. It is no violation. */
export interface Unjudged {
  readonly invariant: Invariant;
  readonly why: string;
}

/** @param at milliseconds since 1970 */
export const timeText = (at: number): string => new Date(at).toISOString().slice(11, 23);

/** Milliseconds since 1970 by the clock of when this program began: nobody can set it, so that spans are right. */
export const now = (): number => performance.timeOrigin + performance.now();
