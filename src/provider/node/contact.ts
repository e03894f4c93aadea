import { timestamp } from '../../api/conditions.ts';
import { VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { Basics } from '../../lib/basics.ts';
import type { KubeClient } from '../../kube/client.ts';
import { readText } from '../../kube/read-text.ts';
import { errorCode, errorMessage } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';

export type ContactReason = (typeof VIRTUAL_NODE_REASONS)[keyof typeof VIRTUAL_NODE_REASONS];

/** What is known of the foreign API server. */
export interface ContactState {
  ok: boolean;
  reason: ContactReason;
  message: string;
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
}

const PROBE_EVERY_MS = 10_000;
const PROBE_WHEN_FAILING_MS = 2_000;
const PROBE_TIMEOUT_MS = 5_000;
/**
 * So many failed probes in a row are forgiven; more are an outage. A credential that is refused is never forgiven. Rights that are
 * missing are: those in a namespace that was just made take effect a moment after they were given.
 */
const FAILURES_FORGIVEN = 2;

const NO_ANSWER = `the foreign API server has not answered within ${PROBE_TIMEOUT_MS / 1000} s`;

/** What a person can do about it, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  Unauthorized: ': the credential is wrong or has expired; put a new kubeconfig into the Secret',
  Forbidden:
    ': the credential has no rights in the tenant namespace; its administrator must apply the tenant again',
};

const isSilence = (code: string | undefined): boolean => code === 'Unreachable' || code === 'Aborted';

/** Probes the foreign API server with a read that the agent depends on, and says what is wrong when it fails. */
export class ForeignContact implements Component {
  readonly name = 'foreign-contact';
  readonly #options: ContactOptions;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  #state: ContactState = {
    ok: false,
    reason: VIRTUAL_NODE_REASONS.starting,
    message: 'the foreign cluster has not been asked yet',
    version: undefined,
  };
  #failures = 0;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;
  #wake: (() => void) | undefined;

  constructor(options: ContactOptions) {
    this.#options = options;
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
    this.#wake?.();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#probeOnce(signal);
      const pauseMs = this.#state.ok && this.#failures === 0 ? PROBE_EVERY_MS : PROBE_WHEN_FAILING_MS;
      await this.#pause(pauseMs, signal);
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort(new Error('probe now'));
    try {
      await this.#options.clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
    } catch {
      // Woken or stopped: either way the loop decides.
    }
  }

  async #probeOnce(signal: AbortSignal): Promise<void> {
    const problem = this.#options.problem();
    if (problem !== undefined) {
      this.#failures++;
      this.#set({ ...this.#state, ok: false, ...problem });
      return;
    }
    const limit = new AbortController();
    const cancel = this.#options.clock.after(PROBE_TIMEOUT_MS, () => limit.abort(new Error(NO_ANSWER)));
    try {
      const either = AbortSignal.any([signal, limit.signal]);
      // Read again after each outage, which may have been an upgrade.
      const known = this.#state.ok ? this.#state.version : undefined;
      const version = known ?? (await this.#version(either));
      await this.#readTenant(either);
      this.#failures = 0;
      this.#set({
        ok: true,
        reason: VIRTUAL_NODE_REASONS.ok,
        message: 'the foreign API server answers',
        version,
      });
    } catch (error) {
      if (!signal.aborted) await this.#failed(error);
    } finally {
      cancel();
    }
  }

  async #version(signal: AbortSignal): Promise<string> {
    const answer = await this.#get('/version', signal);
    const { gitVersion } = JSON.parse(answer) as { gitVersion?: unknown };
    return typeof gitVersion === 'string' ? gitVersion.slice(0, 64) : 'unknown';
  }

  async #readTenant(signal: AbortSignal): Promise<void> {
    const namespace = this.#options.tenantNamespace();
    if (namespace === undefined) await this.#get('/version', signal);
    else await this.#get(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?limit=1`, signal);
  }

  async #get(path: string, signal: AbortSignal): Promise<string> {
    return readText(this.#options.foreign, path, signal);
  }

  async #failed(error: unknown): Promise<void> {
    this.#failures++;
    const code = errorCode(error);
    if (this.#state.ok && code !== 'Unauthorized' && this.#failures <= FAILURES_FORGIVEN) return;
    const cause = code === 'Aborted' ? NO_ANSWER : errorMessage(error);
    const message = isSilence(code) ? await this.#silence(cause) : `${cause}${ADVICE[code ?? ''] ?? ''}`;
    this.#set({
      ok: false,
      reason:
        code === 'Unauthorized'
          ? VIRTUAL_NODE_REASONS.credentialsRejected
          : code === 'Forbidden'
            ? VIRTUAL_NODE_REASONS.notAuthorized
            : code === 'Unavailable'
              ? VIRTUAL_NODE_REASONS.unhealthy
              : VIRTUAL_NODE_REASONS.unreachable,
      message,
      version: this.#state.version,
    });
  }

  /** What it means that nobody answers; the technical cause comes last. */
  async #silence(cause: string): Promise<string> {
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
    if (before.ok === state.ok && before.reason === state.reason && before.message === state.message) return;
    this.#options.log.info('contact with the foreign cluster has changed', {
      ok: state.ok,
      reason: state.reason,
      cause: state.message,
    });
    this.#listeners.tell();
  }
}
