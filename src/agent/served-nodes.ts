import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { keepServing } from './served-node.ts';
import type { VirtualNodeAgent } from './virtual-node.ts';

interface ServedNodesOptions {
  /** Makes the next agent of that virtual node. */
  open: (virtualNode: string, log: Logger) => VirtualNodeAgent;
  /** The agent that was made last for it has stopped. */
  close: (virtualNode: string) => void;
  clock: Clock;
  log: Logger;
}

interface Running {
  abort: AbortController;
  agent: VirtualNodeAgent | undefined;
  /** Settles when it has stopped. */
  done: Promise<void>;
}

/**
 * Virtual nodes that come and go while the process runs. Each is on its own: what fails is started again after a while, and
 * what another agent has taken over is stood by for, whatever becomes of the others.
 */
export class ServedNodes {
  readonly #options: ServedNodesOptions;
  readonly #running = new Map<string, Running>();
  #isStopped = false;

  constructor(options: ServedNodesOptions) {
    this.#options = options;
  }

  /** Also while it ends. */
  has(virtualNode: string): boolean {
    return this.#running.has(virtualNode);
  }

  names(): string[] {
    return [...this.#running.keys()];
  }

  /** The one that serves now, or stands by. */
  agentOf(virtualNode: string): VirtualNodeAgent | undefined {
    return this.#running.get(virtualNode)?.agent;
  }

  /** Does not wait until it has started; its Node says how it is. Does nothing where it is served already. */
  serve(virtualNode: string): void {
    if (this.#isStopped || this.#running.has(virtualNode)) return;
    const { open, close, clock } = this.#options;
    const log = this.#options.log.named('agent', { virtualNode });
    const running: Running = { abort: new AbortController(), agent: undefined, done: Promise.resolve() };
    this.#running.set(virtualNode, running);
    running.done = keepServing(
      {
        open: () => (running.agent = open(virtualNode, log)),
        close: () => close(virtualNode),
        clock,
        log,
      },
      running.abort.signal,
    ).finally(() => this.#running.delete(virtualNode));
  }

  /** Resolves when they have stopped. */
  async end(virtualNodes: readonly string[]): Promise<void> {
    const ending = virtualNodes.flatMap((name) => this.#running.get(name) ?? []);
    for (const { abort } of ending) abort.abort(new Error('no longer wanted'));
    await Promise.all(ending.map(async ({ done }) => done));
  }

  /** Serves nothing any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.end(this.names());
  }
}
