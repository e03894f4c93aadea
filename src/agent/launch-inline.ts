import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentParts } from './parts.ts';

export interface InlineLauncherOptions {
  parts: AgentParts;
  /** Where the home API server reaches the kubelet APIs; ports are free ones. */
  nodeAddress: string;
}

/** Runs agents inside this process: for role `all`, and for labs without pods. */
export class InlineLauncher implements AgentLauncher, Component {
  readonly name = 'inline agents';
  readonly #options: InlineLauncherOptions;

  constructor(options: InlineLauncherOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    return Promise.resolve();
  }

  async ensure(_agent: WantedAgent, _signal: AbortSignal): Promise<void> {
    return Promise.reject(new Error(`not yet: ${this.#options.nodeAddress}`));
  }

  async remove(_clusterID: string, _signal: AbortSignal): Promise<void> {
    return Promise.resolve();
  }
}
