import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { AgentLauncher, WantedAgent } from '../ports.ts';

export interface AgentSetupOptions {
  launcher: AgentLauncher;
  clock: Clock;
  log: Logger;
}

/** The agent's objects are looked at so often where nothing else differs. */
const ENSURE_INTERVAL_MS = 60_000;
const LAUNCH_TIMEOUT_MS = 20_000;

/** The agents, each started where it is wanted and not started. */
export class AgentSetup {
  readonly #options: AgentSetupOptions;
  /** Only so as not to ask at every look. */
  readonly #ensured = new Map<string, { agent: WantedAgent; at: number }>();

  constructor(options: AgentSetupOptions) {
    this.#options = options;
  }

  async ensure(agent: WantedAgent, signal: AbortSignal): Promise<void> {
    const { launcher, clock } = this.#options;
    const before = this.#ensured.get(agent.clusterID);
    const isFresh = before !== undefined && clock.monotonic() - before.at < ENSURE_INTERVAL_MS;
    if (isFresh && deepEqual(before.agent, agent)) return;
    const deadline = startDeadline(
      clock,
      LAUNCH_TIMEOUT_MS,
      `starting the agent of ${agent.clusterID}`,
      signal,
    );
    try {
      await launcher.ensure(agent, deadline.signal);
    } finally {
      deadline.dispose();
    }
    this.#ensured.set(agent.clusterID, { agent, at: clock.monotonic() });
  }

  /** An agent that does not go in time (its machine is dead, say) does not hold up the rest. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    const { launcher, clock, log } = this.#options;
    this.#ensured.delete(clusterID);
    const deadline = startDeadline(clock, LAUNCH_TIMEOUT_MS, `ending the agent of ${clusterID}`, signal);
    try {
      await launcher.remove(clusterID, deadline.signal);
    } catch (error) {
      if (signal.aborted || !(deadline.signal.aborted || hasCode(error, 'Aborted'))) throw error;
      log.warn('the agent did not end in time', { peer: clusterID, error: errorMessage(error) });
    } finally {
      deadline.dispose();
    }
  }
}
