import Registry from 'prom-client/lib/registry.js';
import type { AgentConfig } from '../config.ts';
import type { KubeClient } from '../kube/client.ts';
import { CONTROLLER_METRICS } from '../kube/controller-metrics.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { Basics } from '../lib/basics.ts';
import { counterOf, gaugeOf, histogramOf } from '../lib/instruments.ts';
import { type Component, Lifecycle } from '../lib/lifecycle.ts';
import { type LineCounts, type LogSink, noLines } from '../lib/log.ts';
import { showProcess } from '../lib/process-metrics.ts';
import { VERSION } from '../version.ts';

/** What every role is given. */
export interface AgentParts extends Basics {
  config: AgentConfig;
  /** Of all loggers of the process: its level is changed here. Default: it stays as it is. */
  sink?: Pick<LogSink, 'level'>;
  /** Lines that were logged. */
  lines?: LineCounts;
}

/** A role that is running. */
export interface Agent {
  /** Fires when the agent cannot go on, for example because it no longer leads; the process then ends. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}

/** Deadline for stopping all components together; it is shorter than the pod's grace of 45 s. */
const STOP_DEADLINE_MS = 30_000;

/** The same socket, which gives nothing until it is resumed. */
export const paused = <T extends { pause(): void }>(socket: T): T => {
  socket.pause();
  return socket;
};

export function lifecycleOf(components: readonly Component[], { clock, log }: AgentParts): Lifecycle {
  return new Lifecycle(components, { clock, log: log.named('lifecycle'), stopDeadlineMs: STOP_DEADLINE_MS });
}

/**
 * Starts it unless `lost` fires meanwhile: whoever does not lead any more would wait for what it may no longer write, and
 * nobody looks at `lost` before the start is over.
 *
 * @throws the reason of `lost`, if that has fired
 */
export async function startUnless(
  lost: AbortSignal,
  lifecycle: Lifecycle,
  signal: AbortSignal,
): Promise<void> {
  const given = new AbortController();
  const giveUp = (): void => given.abort(lost.reason);
  lost.addEventListener('abort', giveUp, { once: true });
  if (lost.aborted) giveUp();
  try {
    await lifecycle.start(AbortSignal.any([signal, given.signal]));
  } catch (error) {
    throw lost.aborted ? lost.reason : error;
  } finally {
    lost.removeEventListener('abort', giveUp);
  }
}

/** Starts everything; a failed start stops what had been started, then closes the clients. */
export async function run(
  lifecycle: Lifecycle,
  clients: readonly KubeClient[],
  signal: AbortSignal,
  failed: AbortSignal = new AbortController().signal,
): Promise<Agent> {
  const stop = async (): Promise<void> => {
    await lifecycle.stop();
    await Promise.all(clients.map(async (client) => client.close()));
  };
  try {
    await startUnless(failed, lifecycle, signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return { failed, stop };
}

/** A registry of the process's own; there is no global one. */
export function createRegistry(role: string, { clock, lines = noLines() }: AgentParts): Registry {
  const registry = new Registry();
  showProcess(registry, { version: VERSION, role, lines, startedAt: clock.now() });
  return registry;
}

/** Counts what controllers do, by controller; kube/ itself knows no metrics library. */
export function controllerMetrics(registry: Registry): ControllerMetrics {
  const reconciles = counterOf(registry, CONTROLLER_METRICS.reconciles);
  const duration = histogramOf(registry, CONTROLLER_METRICS.duration);
  const depth = gaugeOf(registry, CONTROLLER_METRICS.depth);
  return {
    reconciled: (controller, outcome, seconds) => {
      reconciles.inc({ controller, outcome });
      duration.observe({ controller }, seconds);
    },
    depth: (controller, waiting) => depth.set({ controller }, waiting),
  };
}
