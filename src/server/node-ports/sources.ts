import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { Logger } from '../../lib/log.ts';
import { NodePorts } from './node-ports.ts';
import type { WantedPort } from './port.ts';

/** What one virtual node wants to be listened on. */
export interface NodePortSource {
  list: () => readonly WantedPort[];
  /** Calls back when it may have changed. */
  onChange: (listener: () => void) => () => void;
}

/**
 * Node ports of virtual nodes that have one address. A Service that several of them know has one number, which is listened on once, until
 * the last of them has gone.
 */
export class NodePortSources implements Component {
  readonly name = 'node ports';
  readonly #sources = new Set<NodePortSource>();
  readonly #changed = new Listeners();
  readonly #ports: NodePorts;

  constructor(options: { host: string; clock: Clock; log: Logger }) {
    this.#ports = new NodePorts({
      ...options,
      wanted: () => [...this.#sources].flatMap((source) => source.list()),
      onChange: this.#changed.add,
    });
  }

  async start(): Promise<void> {
    await this.#ports.start();
  }

  async stop(): Promise<void> {
    await this.#ports.stop();
  }

  /** As long as it runs, these are listened on, too. */
  partOf(source: NodePortSource): Component {
    let end = (): void => undefined;
    return {
      name: 'node ports',
      start: () => {
        const forget = source.onChange(() => this.#changed.tell());
        end = (): void => {
          forget();
          this.#sources.delete(source);
        };
        this.#sources.add(source);
        this.#changed.tell();
      },
      stop: async () => {
        end();
        this.#changed.tell();
        return Promise.resolve();
      },
    };
  }
}
