/** What all sections are given to do something with. */
import type { DashboardAction } from '../src/dashboard/model.ts';

/** Resolves with whether it was done; what came of it is said to the person either way. */
export type Do = (action: DashboardAction) => Promise<boolean>;

export interface Asking {
  title: string;
  text: string;
  /** On the button. */
  word: string;
  isHarsh: boolean;
  action: DashboardAction;
}

/** Asks the person first. */
export type Ask = (asking: Asking) => void;
