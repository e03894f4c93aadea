import { Backoff, type Random, spreadMs } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorCode, errorMessage } from '../../lib/errors.ts';
import type { QuietLog } from '../../lib/quiet-log.ts';
import type { DialProblem, PeerIdentity } from '../ports.ts';
import { fingerprintOf } from '../identity/identity.ts';
import type { Dialer, Secured } from './dialer.ts';
import type { Link, LinkEnd } from './link.ts';

export interface DialTimes {
  /** Ceiling of the first wait; doubles with each failure. Default 0.2 s. */
  baseMs: number;
  /** Ceiling of every wait. Default 30 s. */
  capMs: number;
  /** A link that has lived so long was a good one: what fails next begins anew. Default 10 s. */
  stableMs: number;
  /** For name, TCP and TLS together, and again for the upgrade. Default 5 s. */
  connectMs: number;
}

export const DEFAULT_DIAL_TIMES: Readonly<DialTimes> = {
  baseMs: 200,
  capMs: 30_000,
  stableMs: 10_000,
  connectMs: 5_000,
};

/** What came of a link that was opened: it was greeted, or it ended before. */
export type LinkOutcome = 'greeted' | LinkEnd;

export interface DialLoopOptions {
  /** Whom we want; without it only who answers is learnt. */
  clusterID: string | undefined;
  own: string;
  dialer: Dialer;
  /** Makes a link of what was dialled; resolves when it is known what became of it. */
  adopt: (secured: Secured, endpoint: string, signal: AbortSignal) => Promise<LinkOutcome>;
  /** The link to that peer that is in use, whoever dialled it. */
  current: () => Link | undefined;
  problem: (problem: DialProblem | undefined) => void;
  clock: Clock;
  random: Random;
  quiet: QuietLog;
  times: DialTimes;
}

/** We always wait so long, also if news cuts the wait short, so that news cannot make us spin. */
const LEAST_WAIT_MS = 20;
/** Of each ceiling: so a peer that is away for long is dialled four times a minute at most. */
const LEAST_PART = 0.5;
const MAX_ENDPOINTS = 16;

/** Dials one peer whenever there is no link to it, for as long as it is wanted. */
export class DialLoop {
  readonly #options: DialLoopOptions;
  readonly #abort = new AbortController();
  readonly #backoff: Backoff;
  #endpoints: readonly string[] = [];
  #lastEndpoint: string | undefined;
  #wake: (() => void) | undefined;
  /** News that came while nobody waited for it. */
  #hasNews = false;
  #running: Promise<void> | undefined;

  constructor(options: DialLoopOptions) {
    this.#options = options;
    const { times, random } = options;
    this.#backoff = new Backoff({ baseMs: times.baseMs, capMs: times.capMs, floor: LEAST_PART, random });
  }

  /** The one that worked last comes first. */
  get endpoints(): readonly string[] {
    const last = this.#lastEndpoint;
    const first = last !== undefined && this.#endpoints.includes(last) ? [last] : [];
    return [...new Set([...first, ...this.#endpoints])].slice(0, MAX_ENDPOINTS);
  }

  /** Tries new ones at once if there is no link. */
  setEndpoints(endpoints: readonly string[]): void {
    const isSame =
      endpoints.length === this.#endpoints.length &&
      endpoints.every((endpoint, index) => endpoint === this.#endpoints[index]);
    if (isSame) return;
    this.#endpoints = [...endpoints];
    this.#backoff.reset();
    this.wake();
  }

  start(): void {
    this.#running ??= this.#run(this.#abort.signal);
  }

  /** Something has changed: a link came or went, or there is a new endpoint. */
  wake(): void {
    this.#hasNews = true;
    this.#wake?.();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    this.wake();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, times } = this.#options;
    while (!signal.aborted) {
      if (this.#options.current() !== undefined) {
        this.#options.problem(undefined);
        const since = clock.monotonic();
        while (!signal.aborted && this.#options.current() !== undefined) await this.#news(signal);
        if (clock.monotonic() - since >= times.stableMs) this.#backoff.reset();
        // Both ends notice the end of a link at the same moment.
        await this.#pause(this.#backoff.next(), signal);
      } else {
        this.#hasNews = false;
        const problem = await this.#dialAll(signal);
        if (signal.aborted) return;
        // If a link has come meanwhile, the problem is over.
        const unlinked = this.#options.current() === undefined;
        if (unlinked && problem !== undefined) this.#report(problem);
        if (unlinked) await this.#pause(this.#waitMs(problem), signal);
      }
    }
  }

  #waitMs(problem: DialProblem | undefined): number {
    const { times, random } = this.#options;
    // We have learnt who answers there; that hardly changes.
    if (problem?.reason === 'IdentityUnconfirmed') return spreadMs(times.capMs, random);
    return this.#backoff.next();
  }

  #report(problem: DialProblem): void {
    const { quiet, clusterID } = this.#options;
    this.#options.problem(problem);
    const { reason, message, answeredBy } = problem;
    if (reason === 'WrongIdentity' || reason === 'IncompatibleProtocol') {
      quiet.warn(answeredBy ?? clusterID ?? '?', 'cannot link to a peer', {
        problem: reason,
        error: message,
      });
    }
  }

  /** Returns undefined if a link was made; of several problems, the one that says most. */
  async #dialAll(signal: AbortSignal): Promise<DialProblem | undefined> {
    const { endpoints } = this;
    const problems: DialProblem[] = [];
    for (const endpoint of endpoints) {
      if (signal.aborted || this.#options.current() !== undefined) return undefined;
      const problem = await this.#dial(endpoint, signal);
      if (problem === undefined) {
        this.#lastEndpoint = endpoint;
        return undefined;
      }
      problems.push(problem);
    }
    if (problems.length === 0) return { reason: 'NoEndpoint', message: 'no endpoint is known to dial' };
    const worst = problems.toSorted((one, other) => TELLING[other.reason] - TELLING[one.reason])[0];
    const message = problems.map((problem) => problem.message).join('; ');
    return worst && { ...worst, message };
  }

  async #dial(endpoint: string, signal: AbortSignal): Promise<DialProblem | undefined> {
    try {
      const secured = await this.#options.dialer.secure(endpoint, signal);
      const problem = this.#wrong(secured.peer, endpoint);
      if (problem !== undefined) {
        secured.socket.destroy();
        return problem;
      }
      const outcome = await this.#options.adopt(secured, endpoint, signal);
      return outcome === 'greeted' ? undefined : endedEarly(outcome, endpoint);
    } catch (error) {
      const reason = errorCode(error) === 'Unauthorized' ? 'WrongIdentity' : 'EndpointUnreachable';
      return { reason, message: errorMessage(error) };
    }
  }

  #wrong({ clusterID }: PeerIdentity, endpoint: string): DialProblem | undefined {
    const { own, clusterID: wanted } = this.#options;
    const answeredBy = clusterID;
    if (clusterID === own) {
      return { reason: 'WrongIdentity', message: `${endpoint} is this cluster itself`, answeredBy };
    }
    if (wanted === undefined) {
      const message = `${endpoint} is ${fingerprintOf(clusterID)}; set spec.clusterID to ${clusterID} if that is right`;
      return { reason: 'IdentityUnconfirmed', message, answeredBy };
    }
    if (clusterID === wanted) return undefined;
    return { reason: 'WrongIdentity', message: `${endpoint} is ${clusterID}, not ${wanted}`, answeredBy };
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await clock.sleep(LEAST_WAIT_MS, signal).catch(() => undefined);
    if (signal.aborted || ms <= LEAST_WAIT_MS) return;
    const cancel = clock.after(ms - LEAST_WAIT_MS, () => this.wake());
    await this.#news(signal);
    cancel();
  }

  async #news(signal: AbortSignal): Promise<void> {
    if (!this.#hasNews && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
    this.#hasNews = false;
  }
}

const TELLING: Readonly<Record<DialProblem['reason'], number>> = {
  IncompatibleProtocol: 4,
  IdentityUnconfirmed: 3,
  WrongIdentity: 2,
  EndpointUnreachable: 1,
  NoEndpoint: 0,
};

const endedEarly = ({ incompatible, reason }: LinkEnd, endpoint: string): DialProblem => ({
  reason: incompatible ? 'IncompatibleProtocol' : 'EndpointUnreachable',
  message: `${endpoint}: ${reason}`,
});
