import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { HostProblem, HostReport, LinkConfig } from './host-config.ts';
import { isKernelError, KernelError, type Rtnetlink } from './rtnetlink.ts';

export interface HostContext {
  kernel: Rtnetlink;
  work: Work;
}

/** Our links that are there as wanted, by name. */
export type OurLinks = ReadonlyMap<string, { wanted: LinkConfig; index: number; kind?: string }>;

/** How many problems of the host a status shows to people. */
const MOST_PROBLEMS = 16;

const HINTS: Readonly<Record<string, string>> = {
  EPERM: ' (it takes CAP_NET_ADMIN and the network of the host)',
  EEXIST: ' (something like it is there already)',
};

/** What one `set` or `cleanUp` has done, and what it could not do. A step that fails does not stop the next one. */
export class Work {
  #changes = 0;
  readonly #problems: HostProblem[] = [];
  readonly #removed: (what: string) => void;

  constructor(removed: (what: string) => void = () => undefined) {
    this.#removed = removed;
  }

  /** Runs one write. Resolves to false when it has failed; the failure is kept as a problem. `about`: as in HostProblem. */
  async change(what: string, write: () => Promise<void>, about?: string): Promise<boolean> {
    const run = async (): Promise<number> => {
      await write();
      return 1;
    };
    return this.attempt(what, run, about);
  }

  /** As `change`, for a removal: what is gone already is no problem. */
  async remove(what: string, write: () => Promise<void>, about?: string): Promise<boolean> {
    const run = async (): Promise<number> => {
      try {
        await write();
        this.#removed(what);
        return 1;
      } catch (error) {
        if (!isKernelError(error, 'ENOENT', 'ENODEV', 'ESRCH', 'EADDRNOTAVAIL')) throw error;
        return 0;
      }
    };
    return this.attempt(`removing ${what}`, run, about);
  }

  /** Runs what resolves to a number of changes. Resolves to false when it has failed. Throws errors of code Aborted. */
  async attempt(what: string, run: () => Promise<number>, about?: string): Promise<boolean> {
    try {
      const changes = await run();
      this.#changes += changes;
      return true;
    } catch (error) {
      if (hasCode(error, 'Aborted')) throw error;
      this.refuse(error instanceof KernelError ? refusal(what, error) : errorMessage(error), about);
      return false;
    }
  }

  refuse(message: string, about?: string): void {
    this.add({ reason: 'Refused', message, ...(about !== undefined && { about }) });
  }

  /** Keeps a problem once, however often it is met. */
  add(problem: HostProblem): void {
    if (!this.#problems.some(({ message }) => message === problem.message)) this.#problems.push(problem);
  }

  get changes(): number {
    return this.#changes;
  }

  report(): HostReport {
    // Problems of single routes are all kept, since each may concern another peer. There are no more of them than routes.
    const single = this.#problems.filter(({ about }) => about !== undefined);
    const general = this.#problems.filter(({ about }) => about === undefined);
    const more = general.length - MOST_PROBLEMS;
    const rest: HostProblem[] = more > 0 ? [{ reason: 'Refused', message: `and ${more} more` }] : [];
    return { changes: this.#changes, problems: [...general.slice(0, MOST_PROBLEMS), ...rest, ...single] };
  }
}

const refusal = (what: string, error: KernelError): string =>
  `${what}: ${error.message}${HINTS[error.errno] ?? ''}`;

/** What has to be added to a set and removed from it. */
export interface SetDiff<T> {
  add: T[];
  remove: T[];
}

/** Two elements are equal when their keys are. */
export function diffSets<T>(
  wanted: readonly T[],
  actual: readonly T[],
  keyOf: (element: T) => string,
): SetDiff<T> {
  const wantedByKey = new Map(wanted.map((element) => [keyOf(element), element]));
  const actualKeys = new Set(actual.map(keyOf));
  return {
    add: [...wantedByKey].flatMap(([key, element]) => (actualKeys.has(key) ? [] : [element])),
    remove: actual.filter((element) => !wantedByKey.has(keyOf(element))),
  };
}
