import { events } from '../../api/resources.ts';
import type { NamespaceMapping } from '../../api/virtual-node.ts';
import type { KubeEvent } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { readEvent, type RemoteEvent } from './remote-event.ts';

export interface RemoteEventsOptions {
  mapping: NamespaceMapping;
  foreign: KubeClient;
  clock: Clock;
  log: Logger;
}

/**
 * Where events of one tenant namespace come from. None is kept: each is handed on as it comes, so that memory does not
 * grow with what a provider sends. A provider that does not let them be read (an earlier version) costs the events and
 * nothing else: this is no part of what makes a tenant complete.
 */
export class RemoteEvents {
  readonly #options: RemoteEventsOptions;
  readonly #abort = new AbortController();
  #informer: Informer<KubeEvent> | undefined;
  #running: Promise<void> = Promise.resolve();
  #explained = false;

  constructor(options: RemoteEventsOptions) {
    this.#options = options;
  }

  /** Returns at once. `isNew`: it has happened just now, and was not there when the list was read. */
  open(tell: (event: RemoteEvent, isNew: boolean) => void): void {
    if (this.#informer !== undefined || this.#abort.signal.aborted) return;
    const { mapping, foreign, clock, log } = this.#options;
    const informer = new Informer<KubeEvent>({
      client: foreign,
      type: events,
      list: { namespace: mapping.tenantNamespace, fieldSelector: 'involvedObject.kind=Pod' },
      clock,
      log: log.named('events'),
      transform: (object) => {
        const event = readEvent(object, clock.now());
        if (event !== undefined) tell(event, informer.synced);
        return undefined;
      },
    });
    this.#informer = informer;
    informer.onContact(() => this.#explain(informer.contact.error));
    this.#running = informer.start(this.#abort.signal).catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('tenant closed'));
    await this.#running;
    await this.#informer?.stop();
  }

  #explain(error: string | undefined): void {
    if (this.#explained || error === undefined || !/forbidden/iu.test(error)) return;
    this.#explained = true;
    this.#options.log.info(
      'the provider does not let events be read: what happens to pods there is not told at home, all else goes on',
      { error },
    );
  }
}
