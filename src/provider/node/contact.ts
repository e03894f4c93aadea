import { timestamp } from '../../api/conditions.ts';
import { AWAY_AFTER_SECONDS, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { Basics } from '../../lib/basics.ts';
import type { KubeClient } from '../../kube/client.ts';
import { readText } from '../../kube/read-text.ts';
import { errorCode, errorMessage } from '../../lib/errors.ts';
import { untilMomentMs } from '../../lib/grid.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { Pause } from '../../lib/pause.ts';
import { Silence } from './silence.ts';

export type ContactReason = (typeof VIRTUAL_NODE_REASONS)[keyof typeof VIRTUAL_NODE_REASONS];

/** What is known of the foreign API server. */
export interface ContactState {
  ok: boolean;
  reason: ContactReason;
  message: string;
  /** Nothing has answered for the time of grace, or what has answered refuses us: the foreign cluster counts as away. */
  away: boolean;
  /** gitVersion of the foreign API server, once it has answered. */
  version: string | undefined;
}

interface ContactOptions extends Basics {
  foreign: KubeClient;
  /** Why no request can be made at all, such as a kubeconfig that cannot be parsed. */
  problem: () => { reason: ContactReason; message: string } | undefined;
  /** When the credential ends, in milliseconds since 1970. Default: nobody knows. */
  credentialEnds?: () => Promise<number | undefined>;
  /** A tenant namespace to read from, so that the credential and its rights are proved too. */
  tenantNamespace: () => string | undefined;
  /** Nothing may answer for so long before the foreign cluster is away, in seconds. Default 20. */
  awayAfterSeconds?: () => number | undefined;
}

/**
 * At most so long after an answer comes the next probe. Silence may begin right after an answer, and is counted from the first probe that meets it. With the probe that decides, it is told
 * within 5 s after the time of grace. Between two renewals of the home's Lease, which are answers too, two probes are enough.
 */
const LONGEST_REST_MS = 3_400;
/** A probe comes a little after the moment in which Leases are renewed, since the answer to a renewal puts it off. */
const AFTER_RENEWALS_MS = 180;
const PROBE_IN_GRACE_MS = 1_000;
const PROBE_WHEN_AWAY_MS = 2_000;
const PROBE_TIMEOUT_MS = 5_000;
/** The probe after the time of grace, which decides, gets so long; none begins within so long before it. */
const LEAST_TIMEOUT_MS = 1_000;

/** Need not exist. To look for one name costs a server less than to begin a list, and the answer is short. */
const PROBED_POD = 'tributary-probe';

const NO_ANSWER = 'the foreign API server has not answered in time';

/** What a person can do about it, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  Unauthorized: ': the credential is wrong or has expired; put a new kubeconfig into the Secret',
  Forbidden:
    ': the credential has no rights in the tenant namespace; its administrator must apply the tenant again',
};

const REASONS: Readonly<Record<string, ContactReason>> = {
  Unauthorized: VIRTUAL_NODE_REASONS.credentialsRejected,
  Forbidden: VIRTUAL_NODE_REASONS.notAuthorized,
  Unavailable: VIRTUAL_NODE_REASONS.unhealthy,
};

/** No request can be made at all. */
class Refused extends Error {
  readonly problem: { reason: ContactReason; message: string };

  constructor(problem: { reason: ContactReason; message: string }) {
    super(problem.message);
    this.problem = problem;
  }
}

const isSilence = (code: string | undefined): boolean => code === 'Unreachable' || code === 'Aborted';

/**
 * Probes the foreign API server with a read that the agent depends on, and says what is wrong when it fails. What fails for less
 * than the time of grace changes nothing. A credential that is refused has no grace. Rights that are missing have: those in a
 * namespace that was just made take effect a moment after they were given.
 */
export class ForeignContact implements Component {
  readonly name = 'foreign-contact';
  readonly #options: ContactOptions;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  #state: ContactState = {
    ok: false,
    reason: VIRTUAL_NODE_REASONS.starting,
    message: 'the foreign cluster has not been asked yet',
    away: false,
    version: undefined,
  };
  readonly #silence: Silence;
  /** Of the last probe. */
  #failure: { error: unknown } | undefined;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;
  readonly #pause: Pause;
  /** Why the present pause has ended early. */
  #woken: 'asked' | 'answered' | undefined;

  constructor(options: ContactOptions) {
    this.#options = options;
    this.#silence = new Silence(options.clock);
    this.#pause = new Pause(options.clock);
  }

  get state(): ContactState {
    return this.#state;
  }

  /** Returns at once; the foreign cluster may be away for long. */
  async start(): Promise<void> {
    this.#background.run(async (signal) => this.#run(signal));
  }

  /** Ask now, for example because the credential has changed. */
  probe(): void {
    this.#woken = 'asked';
    this.#pause.end();
  }

  /** Another request with the same credential was answered, which is as good as a probe: the next one can wait. */
  answered(): void {
    if (!this.#state.ok || this.#failure !== undefined || this.#woken !== undefined) return;
    this.#woken = 'answered';
    this.#pause.end();
  }

  get #graceMs(): number {
    return (this.#options.awayAfterSeconds?.() ?? AWAY_AFTER_SECONDS) * 1000;
  }

  /** What is left of the time of grace, in milliseconds; none for one that is not in contact. */
  get #leftMs(): number {
    return this.#state.ok ? Math.max(0, this.#graceMs - this.#silence.ms) : 0;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const limitMs = this.#state.ok
        ? Math.min(PROBE_TIMEOUT_MS, Math.max(LEAST_TIMEOUT_MS, this.#leftMs))
        : PROBE_TIMEOUT_MS;
      // Whoever is back within the time of grace answers to a probe that begins after it.
      const isLast = this.#silence.ms >= this.#graceMs;
      const wasAwake = await this.#silence.during(limitMs, async () => this.#probeOnce(limitMs, signal));
      if (signal.aborted) return;
      if (this.#failure === undefined) this.#silence.end();
      // Its answer may wait in a socket that nobody has read.
      else if (!wasAwake) continue;
      else await this.#failed(this.#failure.error, isLast);
      await this.#rest(signal);
    }
  }

  /** Between two probes. While the last one has failed, it counts. */
  async #rest(signal: AbortSignal): Promise<void> {
    if (this.#failure === undefined) {
      this.#woken = undefined;
      await this.#untilDue(signal);
      return;
    }
    const isNearEnd = this.#leftMs < PROBE_IN_GRACE_MS + LEAST_TIMEOUT_MS;
    const inGraceMs = isNearEnd ? this.#leftMs : PROBE_IN_GRACE_MS;
    const ms = this.#state.ok ? inGraceMs : PROBE_WHEN_AWAY_MS;
    await this.#silence.during(ms, async () => this.#pause.for(ms, signal));
  }

  /** An answer to another request puts the next probe off once: what is read by a probe is proved by nothing else. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    await this.#pause.for(this.#probeInMs, signal);
    if (this.#woken === 'answered' && !signal.aborted) await this.#pause.for(this.#probeInMs, signal);
  }

  get #probeInMs(): number {
    return untilMomentMs(this.#options.clock, LONGEST_REST_MS - AFTER_RENEWALS_MS) + AFTER_RENEWALS_MS;
  }

  async #probeOnce(limitMs: number, signal: AbortSignal): Promise<void> {
    // A connection on which nothing comes back may be dead, while another one would live.
    const isHung = errorCode(this.#failure?.error) === 'Aborted';
    this.#failure = undefined;
    const problem = this.#options.problem();
    if (problem !== undefined) {
      this.#failure = { error: new Refused(problem) };
      return;
    }
    const limit = new AbortController();
    const cancel = this.#options.clock.after(limitMs, () => limit.abort(new Error('no answer in time')));
    const stop = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      // Read again after each outage, which may have been an upgrade.
      const known = this.#state.ok ? this.#state.version : undefined;
      const version = known ?? (await this.#version(limit.signal, isHung));
      await this.#readTenant(limit.signal, isHung && known !== undefined);
      this.#set({
        ok: true,
        reason: VIRTUAL_NODE_REASONS.ok,
        message: 'the foreign API server answers',
        away: false,
        version,
      });
    } catch (error) {
      this.#failure = { error };
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  async #version(signal: AbortSignal, isFresh: boolean): Promise<string> {
    const answer = await this.#get('/version', signal, isFresh);
    const { gitVersion } = JSON.parse(answer) as { gitVersion?: unknown };
    return typeof gitVersion === 'string' ? gitVersion.slice(0, 64) : 'unknown';
  }

  async #readTenant(signal: AbortSignal, isFresh: boolean): Promise<void> {
    const namespace = this.#options.tenantNamespace();
    const path =
      namespace === undefined
        ? '/version'
        : `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?limit=1&fieldSelector=metadata.name%3D${PROBED_POD}`;
    await this.#get(path, signal, isFresh);
  }

  async #get(path: string, signal: AbortSignal, isFresh: boolean): Promise<string> {
    return readText(this.#options.foreign, path, { signal, isFresh });
  }

  async #failed(error: unknown, isOver: boolean): Promise<void> {
    if (error instanceof Refused) {
      this.#set({ ...this.#state, ok: false, ...error.problem, away: true });
      return;
    }
    const code = errorCode(error);
    const isRefused = code === 'Unauthorized';
    if (this.#state.ok && !isRefused && !isOver) return;
    const cause = code === 'Aborted' ? NO_ANSWER : errorMessage(error);
    const message = isSilence(code) ? await this.#silent(cause) : `${cause}${ADVICE[code ?? ''] ?? ''}`;
    this.#set({
      ok: false,
      reason: REASONS[code ?? ''] ?? VIRTUAL_NODE_REASONS.unreachable,
      message,
      away: isRefused || isOver,
      version: this.#state.version,
    });
  }

  /** What it means that nobody answers; the technical cause comes last. */
  async #silent(cause: string): Promise<string> {
    const ends = await this.#options.credentialEnds?.();
    const until = ends === undefined ? '' : `, and the credential holds until ${timestamp(ends)}`;
    return (
      'nothing answers on the way to the foreign API server: that server is down, or the role cluster (here or there) through ' +
      `whose port it is reached. Pods over there run on${until}. Cause: ${cause}`
    );
  }

  #set(state: ContactState): void {
    const before = this.#state;
    this.#state = state;
    const isSame = (key: 'ok' | 'away' | 'reason' | 'message'): boolean => before[key] === state[key];
    const isAsBefore = isSame('ok') && isSame('away') && isSame('reason');
    if (isAsBefore && isSame('message')) return;
    // While a cluster is away, attempts fail now in this and now in that way.
    this.#options.log[isAsBefore ? 'debug' : 'info']('contact with the foreign cluster has changed', {
      ok: state.ok,
      reason: state.reason,
      cause: state.message,
    });
    this.#listeners.tell();
  }
}
