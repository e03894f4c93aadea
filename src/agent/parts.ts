import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { AgentConfig } from '../config.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { Basics } from '../lib/basics.ts';
import { type Component, Lifecycle } from '../lib/lifecycle.ts';
import { VERSION } from '../version.ts';

/** What every role is given. */
export interface AgentParts extends Basics {
  config: AgentConfig;
}

/** A role that is running. */
export interface Agent {
  /** Fires when the agent cannot go on, for example because it no longer leads; the process then ends. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}

/** Deadline for stopping all components together; it is shorter than the pod's grace of 45 s. */
const STOP_DEADLINE_MS = 30_000;

export function lifecycleOf(components: readonly Component[], { clock, log }: AgentParts): Lifecycle {
  return new Lifecycle(components, { clock, log: log.named('lifecycle'), stopDeadlineMs: STOP_DEADLINE_MS });
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
    await lifecycle.start(signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return { failed, stop };
}

/** A registry of the agent's own; there is no global one. */
export function createRegistry(role: string): Registry {
  const registry = new Registry();
  new Gauge({
    name: 'tributary_build_info',
    help: 'Version and role of this agent; always 1.',
    labelNames: ['version', 'role'],
    registers: [registry],
  }).set({ version: VERSION, role }, 1);
  registry.registerMetric(
    new Gauge({
      name: 'process_resident_memory_bytes',
      help: 'Resident memory of this process.',
      registers: [],
      collect(): void {
        this.set(process.memoryUsage.rss());
      },
    }),
  );
  return registry;
}

/** Counts what controllers do, by controller; kube/ itself knows no metrics library. */
export function controllerMetrics(registry: Registry): ControllerMetrics {
  const registers = [registry];
  const reconciles = new Counter({
    name: 'tributary_reconciles_total',
    help: 'Reconciles by controller and outcome.',
    labelNames: ['controller', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'tributary_reconcile_duration_seconds',
    help: 'Duration of reconciles by controller.',
    labelNames: ['controller'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers,
  });
  const depth = new Gauge({
    name: 'tributary_queue_depth',
    help: 'Keys that wait, by controller.',
    labelNames: ['controller'],
    registers,
  });
  return {
    reconciled: (controller, outcome, seconds) => {
      reconciles.inc({ controller, outcome });
      duration.observe({ controller }, seconds);
    },
    depth: (controller, waiting) => depth.set({ controller }, waiting),
  };
}
