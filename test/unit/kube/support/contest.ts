import type { Lease } from '../../../../src/api/wire.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { LeaderElection, type LeaderElectionOptions } from '../../../../src/kube/leader-election.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

export const DURATION_MS = 15_000;
export const REF = { namespace: 'ns', name: 'leader' };

/** The clock of a process that can be stopped as by SIGSTOP: time goes on, but nothing in it happens. */
class StoppableClock implements Clock {
  readonly #clock: Clock;
  #stopped = false;
  readonly #late: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now = (): number => this.#clock.now();
  monotonic = (): number => this.#clock.monotonic();

  after(delayMs: number, callback: () => void): () => void {
    let cancelled = false;
    const run = (): void => {
      if (cancelled) return;
      if (this.#stopped) this.#late.push(run);
      else callback();
    };
    const cancel = this.#clock.after(delayMs, run);
    return () => {
      cancelled = true;
      cancel();
    };
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.after(delayMs, resolve);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    await promise.finally(cancel);
  }

  stop(): void {
    this.#stopped = true;
  }

  resume(): void {
    this.#stopped = false;
    for (const run of this.#late.splice(0)) run();
  }
}

export interface Contender {
  election: LeaderElection;
  process: StoppableClock;
  lost: string[];
  taken: string[];
  elected: () => boolean;
}

/** Processes that want to lead by one Lease, at a simulated API server. */
export class Contest {
  readonly clock: FakeClock = new FakeClock();
  readonly server: FakeApi = new FakeApi({ clock: this.clock });
  readonly clients: HttpClient[] = [];
  readonly #elections: LeaderElection[] = [];

  contend(identity: string, options: Partial<LeaderElectionOptions> = {}): Contender {
    const process = new StoppableClock(this.clock);
    // The client's own time limits are not what is tested, and would fire while we step.
    const client = this.server.client({ timeoutMs: 1e9, clock: process });
    this.clients.push(client);
    const lost: string[] = [];
    const taken: string[] = [];
    const election = new LeaderElection({
      client,
      clock: process,
      log: silentLogger,
      ...REF,
      identity,
      durationMs: DURATION_MS,
      random: () => 0.5,
      onLost: (reason) => lost.push(reason),
      onTaken: (by) => taken.push(by),
      ...options,
    });
    this.#elections.push(election);
    let elected = false;
    election.start(new AbortController().signal).then(
      () => (elected = true),
      () => undefined,
    );
    return { election, process, lost, taken, elected: () => elected };
  }

  /** Lets time pass in steps, and in each the requests be answered. */
  async pass(ms: number, stepMs = 500): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      await this.clock.advance(Math.min(stepMs, left));
      await this.clock.until('answers', () => this.clients.every(({ stats }) => stats.streamsOpen === 0));
      await this.clock.advance(0);
    }
  }

  get lease(): Lease | undefined {
    return this.server.storage.get('leases.coordination.k8s.io', 'ns/leader');
  }

  async end(): Promise<void> {
    await Promise.all(this.#elections.map((election) => election.stop()));
    await Promise.all(this.clients.map((client) => client.close()));
    await this.server.stop();
  }
}
