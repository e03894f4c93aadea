import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { persistentVolumeClaims } from '../../api/resources.ts';
import type { KubeEvent } from '../../api/wire.ts';
import { Informer } from '../../kube/informer.ts';
import { followEvents, type RemoteEvent } from '../events/remote-events.ts';
import type { SidesOptions } from '../reflect/mirror-sides.ts';
import { type Claim, claimKey } from './claims.ts';

interface ClaimListener {
  /** A claim of that name changed, here or over there. */
  claim: (homeNamespace: string, name: string) => void;
  synced: (homeNamespace: string) => void;
  /** An event about a claim over there. `isNew`: it has happened just now. */
  event: (homeNamespace: string, event: RemoteEvent, isNew: boolean) => void;
}

/**
 * The claims of one offloaded namespace, here and over there. Opened only where somebody needs volumes, so that others pay
 * nothing. A tenant's `synced` does not depend on it: a foreign cluster of an earlier version does not let claims be read.
 */
export class ClaimSides {
  readonly #options: SidesOptions;
  readonly #abort = new AbortController();
  #open: { home: Informer<Claim>; remote: Informer<Claim>; events: Informer<KubeEvent> } | undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: SidesOptions) {
    this.#options = options;
  }

  /** Returns at once; a second time does nothing. */
  open(listener: ClaimListener): void {
    if (this.#open !== undefined || this.#abort.signal.aborted) return;
    const { mapping, owner, home, foreign, clock, log, awaitsRights = false } = this.#options;
    const { homeNamespace, tenantNamespace } = mapping;
    const common = { clock, log: log.named('claims'), type: persistentVolumeClaims, awaitsRights };
    const sides = {
      home: new Informer<Claim>({ ...common, client: home, list: { namespace: homeNamespace } }),
      remote: new Informer<Claim>({
        ...common,
        client: foreign,
        list: { namespace: tenantNamespace, labelSelector: `${LABEL_MANAGED_BY}=${owner}` },
      }),
    };
    const told = followEvents(
      { mapping, foreign, clock, log: log.named('claim-events'), awaitsRights },
      'PersistentVolumeClaim',
      (...news) => listener.event(homeNamespace, ...news),
    );
    this.#open = { ...sides, events: told };
    const { signal } = this.#abort;
    for (const side of Object.values(sides)) {
      side.onChange((key) => listener.claim(homeNamespace, key.slice(key.indexOf('/') + 1)));
      side.onContact(() => {
        if (side.contact.code === 'Forbidden') listener.synced(homeNamespace);
      });
    }
    const syncs = Promise.all([sides.home.start(signal), sides.remote.start(signal)]).then(() =>
      listener.synced(homeNamespace),
    );
    this.#running = Promise.allSettled([syncs, told.start(signal)]);
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  get synced(): boolean {
    return this.#open !== undefined && this.#open.home.synced && this.#open.remote.synced;
  }

  /** Why claims cannot be read at all; undefined where it is only a matter of time. */
  get forbidden(): string | undefined {
    if (this.#open === undefined || this.synced) return undefined;
    return [this.#open.home, this.#open.remote]
      .map(({ contact }) => contact)
      .find(({ code }) => code === 'Forbidden')?.error;
  }

  home(name: string): Claim | undefined {
    return this.#open?.home.get(claimKey(this.#options.mapping.homeNamespace, name));
  }

  remote(name: string): Claim | undefined {
    return this.#open?.remote.get(claimKey(this.#options.mapping.tenantNamespace, name));
  }

  /** Names of the claims of both sides. */
  names(): Set<string> {
    if (this.#open === undefined) return new Set();
    const { home, remote } = this.#open;
    return new Set([...home.list(), ...remote.list()].map(({ metadata }) => metadata.name));
  }

  relist(reason: string): void {
    this.#open?.home.relist(reason);
    this.#open?.remote.relist(reason);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('tenant closed'));
    await this.#running;
    await Promise.all(Object.values(this.#open ?? {}).map(async (informer) => informer.stop()));
  }
}
