import { type Random, spreadMs, systemRandom } from '../lib/backoff.ts';
import { startDeadline, untilAborted } from '../lib/deadline.ts';
import { TributaryError, errorMessage, hasCode } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { type LeaseOptions, LeaseRecord } from './lease.ts';
import { nextRenewal, type RenewalTimes } from './lone-leader.ts';

export interface LeaderElectionOptions extends LeaseOptions {
  log: Logger;
  /** A leader steps down if it could not renew for so long. Shorter than the duration; default two thirds of it. */
  renewDeadlineMs?: number;
  /** Time between two attempts; default a seventh of the duration. */
  retryMs?: number;
  /** Longest time from one renewal to the next; default a quarter of the duration. Each is an event for everybody who watches the Lease. */
  renewMs?: number;
  /**
   * Times of a leader for whom nobody waits; it renews more rarely. A candidate makes itself known in the Lease, and after the next
   * renewal all is as usual. Whoever comes must do that, and honour the duration that the Lease has. Default: always as usual.
   */
  lone?: RenewalTimes;
  random?: Random;
  /**
   * Whether `stop` gives up the lease, so that a successor need not wait for it to lapse; default true. Without it a
   * program that starts again under the same identity finds itself leader still.
   */
  releaseOnStop?: boolean;
  /**
   * Whether a leader that could not renew in time waits, with `leading` false, until it can or somebody else has taken the
   * lease; default false: it has lost. For those who ask `leading` before each act.
   */
  outlastsSilence?: boolean;
  /** Called when a leader that has outlasted silence leads again. */
  onRegained?: () => void;
  /** Called when the lease is seen in somebody else's hands, before `onLost`; again when that is another one. */
  onTaken?: (holder: string) => void;
  /** Called once, when leadership is lost after it was had, or could not be kept. The program then ends. */
  onLost: (reason: string) => void;
}

/** By which share of itself the time between renewals varies, so that leaders do not keep in step. */
const RENEWALS_APART = 0.1;

/**
 * One leader of many, by a Lease. `start` resolves on becoming leader.
 *
 * Two rules keep a stale leader from writing. The term (`signal`, `check`) ends on our own monotonic clock a
 * renew deadline after the *start* of the last renewal that succeeded, so before anybody else may take over. And
 * since a stopped process can end no term, `check` compares the clock before each write instead of trusting a
 * timer, and the renewal itself is a write by resourceVersion.
 */
export class LeaderElection implements Component {
  readonly name: string;
  readonly #options: LeaderElectionOptions;
  readonly #record: LeaseRecord;
  readonly #abort = new AbortController();
  readonly #term = new AbortController();
  readonly #elected = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();
  #termEndsAt = -Infinity;
  /** By the wall clock, which alone goes on while a machine sleeps. */
  #termEndsAtWall = Infinity;
  #holder: string | undefined;
  /** Monotonic. */
  #askedAt: number | undefined;
  /** The last attempt did not succeed, so the Lease is read before it is written. */
  #isDoubtful = false;
  /** As the Lease was written last. */
  #times: RenewalTimes;
  #said = '';

  constructor(options: LeaderElectionOptions) {
    this.name = `leader election ${options.namespace}/${options.name}`;
    this.#options = options;
    this.#times = usualTimes(options);
    for (const { durationMs, renewDeadlineMs } of [this.#times, options.lone ?? this.#times]) {
      if (renewDeadlineMs < durationMs) continue;
      throw new TributaryError(
        'Invalid',
        `${this.name}: the renew deadline must be shorter than the duration`,
      );
    }
    this.#record = new LeaseRecord(options);
  }

  /** Fires when leadership is lost. */
  get signal(): AbortSignal {
    return this.#term.signal;
  }

  /** If it outlasts silence, a wall clock that is set forward ends the term too: a machine that slept looks the same. */
  get leading(): boolean {
    const { clock, outlastsSilence = false } = this.#options;
    if (this.#term.signal.aborted || clock.monotonic() >= this.#termEndsAt) return false;
    return !outlastsSilence || clock.now() < this.#termEndsAtWall;
  }

  /** Whoever else held the lease when it was last seen. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** As of a LeaseRecord. */
  get predecessorAt(): number | undefined {
    return this.#record.predecessorAt;
  }

  /** Throws unless we lead now. For the lines before a write: timers of a process that was stopped fire late. */
  check(): void {
    if (!this.leading) throw new TributaryError('Aborted', `${this.name}: not the leader (any more)`);
  }

  async start(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#abort.abort(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    this.#running = this.#run(this.#abort.signal).finally(() => signal.removeEventListener('abort', stop));
    await untilAborted(this.#elected.promise, this.#abort.signal);
  }

  /** Ends the term first, then gives up the lease. */
  async stop(): Promise<void> {
    const { clock, log, releaseOnStop = true } = this.#options;
    const led = this.leading;
    this.#termEndsAt = -Infinity;
    this.#abort.abort(new TributaryError('Aborted', 'stopped'));
    this.#term.abort(new TributaryError('Aborted', 'stopped'));
    await this.#running;
    const isLong = this.#times.durationMs > this.#options.durationMs;
    if (!led || (!releaseOnStop && !isLong)) return;
    using deadline = startDeadline(clock, 3000, this.name);
    try {
      if (releaseOnStop) await this.#record.release(deadline.signal);
      // Whoever comes now waits no longer than one who was there already.
      else await this.#record.write(deadline.signal);
    } catch (error) {
      log.debug('lease not given up', { error: errorMessage(error) });
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random = systemRandom } = this.#options;
    while (!signal.aborted && !this.#term.signal.aborted) {
      const had = this.#termEndsAt !== -Infinity;
      const began = clock.monotonic();
      let waitMs = spreadMs(this.#retryMs, random);
      let problem = 'the lease could not be renewed in time';
      try {
        // How long an API server may be away depends on the longest of these times, and what they cost on their mean.
        if (await this.#attempt(signal)) waitMs = this.#times.renewMs * (1 - RENEWALS_APART * random());
      } catch (error) {
        if (signal.aborted) return;
        problem = errorMessage(error);
        // One that has hung has waited already; what is left of the term is for the next one.
        waitMs = Math.max(0, waitMs - (clock.monotonic() - began));
        if (had) log.debug('lease not renewed', { error: problem });
        else this.#complain('the lease cannot be taken', problem);
      }
      if (had && !this.leading && !this.#outlasts(problem)) continue;
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  /** The term is over, and the lease not renewed: false if leadership is lost by that. */
  #outlasts(problem: string): boolean {
    const { outlastsSilence = false } = this.#options;
    if (!outlastsSilence) this.#lose('the lease could not be renewed in time');
    else if (!this.#term.signal.aborted && this.#said === '')
      this.#complain('the lease cannot be renewed, and nothing is written until it can', problem);
    return outlastsSilence;
  }

  /** Whoever cannot take or keep the lease writes nothing at all, so people are told why; once for each cause. */
  #complain(what: string, error: string): void {
    if (error === this.#said) return;
    this.#said = error;
    this.#options.log.warn(what, { lease: this.name, error });
  }

  #regained(): void {
    if (this.#said !== '') this.#options.log.info('leading again', { lease: this.name });
    this.#said = '';
    this.#options.onRegained?.();
  }

  get #retryMs(): number {
    const { durationMs, retryMs = durationMs / 7 } = this.#options;
    return retryMs;
  }

  /** How long an attempt may take. One that hangs leaves a leader the time for another; only the last has all that is left. */
  #patienceMs(nowMs: number): number {
    if (!this.leading) return usualTimes(this.#options).renewDeadlineMs;
    const leftMs = this.#termEndsAt - nowMs;
    return leftMs > 2 * this.#retryMs ? leftMs / 2 : leftMs;
  }

  /** Reads the lease once and, if we may take it, writes it once; both before the term would end. True if it is ours. */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    const beganWall = clock.now();
    using deadline = startDeadline(clock, this.#patienceMs(began), this.name, signal);
    try {
      const known = this.#record.view();
      const isKnown = this.leading && known.state === 'held' && !this.#isDoubtful;
      // What has failed may have been done, or be done yet: the version of before is then none to write by.
      this.#isDoubtful = true;
      const view = isKnown ? known : await this.#record.look(deadline.signal);
      if (view.state === 'taken') {
        this.#taken(view.holder, 'somebody else holds the lease');
        if (this.#options.lone !== undefined) await this.#record.standBy(deadline.signal);
        return false;
      }
      await this.#renew({ began, beganWall }, deadline.signal);
      this.#isDoubtful = false;
      return true;
    } catch (error) {
      if (hasCode(error, 'Conflict', 'AlreadyExists', 'NotFound')) {
        const view = await this.#record.look(deadline.signal);
        if (view.state === 'taken') this.#taken(view.holder, 'somebody else took the lease');
        return false;
      }
      throw error;
    }
  }

  async #renew(at: { began: number; beganWall: number }, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const { times, asksForCandidates } = this.#next(at.began);
    const { durationMs, renewDeadlineMs } = times;
    const [termEndsAt, termEndsAtWall] = [at.began + renewDeadlineMs, at.beganWall + renewDeadlineMs];
    // Should the answer be lost, a Lease that has become shorter counts for others all the same.
    this.#termEndsAt = Math.min(this.#termEndsAt, termEndsAt);
    this.#termEndsAtWall = Math.min(this.#termEndsAtWall, termEndsAtWall);
    await this.#record.write(signal, { durationMs, asksForCandidates });
    const first = this.#termEndsAt === -Infinity;
    const wasOver = !this.leading;
    if (asksForCandidates) this.#askedAt = at.began;
    this.#times = times;
    this.#termEndsAt = termEndsAt;
    this.#termEndsAtWall = termEndsAtWall;
    if (!first) {
      if (wasOver) this.#regained();
      return;
    }
    this.#said = '';
    log.info('leading', { lease: this.name });
    this.#elected.resolve();
  }

  #next(nowMs: number): { times: RenewalTimes; asksForCandidates: boolean } {
    const usual = usualTimes(this.#options);
    const { lone } = this.#options;
    if (lone === undefined) return { times: usual, asksForCandidates: false };
    const facts = { nowMs, askedAtMs: this.#askedAt, answerMs: usual.durationMs };
    const next = nextRenewal({ ...facts, hasCandidate: this.#record.hasCandidate });
    return { times: next === 'lone' ? lone : usual, asksForCandidates: next === 'ask' };
  }

  #taken(holder: string, reason: string): void {
    if (holder !== this.#holder) {
      this.#holder = holder;
      this.#options.onTaken?.(holder);
    }
    if (this.#termEndsAt !== -Infinity) this.#lose(reason);
  }

  #lose(reason: string): void {
    if (this.#term.signal.aborted) return;
    this.#options.log.warn('leadership lost', { reason });
    this.#term.abort(new TributaryError('Aborted', reason));
    this.#options.onLost(reason);
  }
}

function usualTimes({ durationMs, renewDeadlineMs, renewMs }: LeaderElectionOptions): RenewalTimes {
  return {
    durationMs,
    renewDeadlineMs: renewDeadlineMs ?? (durationMs * 2) / 3,
    renewMs: renewMs ?? durationMs / 4,
  };
}
