import type { Contract, SignedContract } from '../../api/offer.ts';
import type { PeeringReport } from '../ports.ts';
import type { Verdict } from './verdict.ts';

/** What is to be done next; each is safe to begin again after a kill. */
export type Course =
  /** Nothing but to say how it stands. */
  | { kind: 'rest'; report: PeeringReport; verdict?: Verdict; contract?: SignedContract }
  /** The last offer has to be kept as an Advertisement, before anything is made of it. */
  | { kind: 'keep' }
  /** Sign this, keep it, and only then say it. */
  | { kind: 'sign'; verdict: Verdict; contract: Contract }
  /** Run pods over there. */
  | {
      kind: 'use';
      verdict: Verdict;
      contract: SignedContract;
      /** Absent while a newer contract waits for the provider: what is there stays as it is. */
      terms?: Contract;
      /** Nothing new is to be placed there, and why. */
      closed?: string;
    }
  /** Take down what was made. */
  | {
      kind: 'end';
      report: PeeringReport;
      verdict?: Verdict;
      /** The provider keeps its side until we are done. */
      contract?: SignedContract;
      /** The Advertisement goes, too. */
      forget: boolean;
      /** The agent can do nothing over there any more. */
      revoked: boolean;
    };
