import { isIP } from 'node:net';

import type { Basics } from '../../lib/basics.ts';
import { Debounce } from '../../lib/debounce.ts';
import { TributaryError } from '../../lib/errors.ts';
import { Listeners } from '../../lib/listeners.ts';
import { addressBytes } from './addresses.ts';
import { cleanUpHost } from './clean-up.ts';
import type { HostConfig, HostNetwork, HostReport, Owner, WireGuardPeerState } from './host-config.ts';
import { createLink, deleteLink, dumpLinks, linkMtu } from './links.ts';
import { dumpRoutes, foreignDestinations, linkIndex, lookUpRoute } from './routes.ts';
import { KernelError, Rtnetlink } from './rtnetlink.ts';
import { setHost } from './set.ts';
import { Watch } from './watch.ts';
import { hasWireGuard } from './wireguard/choice.ts';
import { wireguardPeers } from './wireguard/wireguard.ts';
import { Work } from './work.ts';

/** The shortest time between two calls of `HostNetwork.onChange`. */
const QUIET_MS = 100;

/** For so long the MTU of a link is as it was read: the paths to many peers, which are looked at together, begin with one link. */
const SAME_MTU_MS = 100;

/** Name of the link that is made for the trial, and removed at once. */
const TRIAL = 'tributary-trial';

interface HostOptions extends Basics {
  /** Called with each thing that was removed. */
  removed?: (what: string) => void;
}

/** The network of the host: of the network namespace in which this process runs. */
export async function createHost(options: HostOptions): Promise<HostNetwork> {
  return new Host(options);
}

class Host implements HostNetwork {
  readonly #options: HostOptions;
  readonly #kernel: Rtnetlink;
  readonly #listeners = new Listeners();
  readonly #changes: Debounce;
  #watch: Watch | undefined;
  /** Indexes of our links, by owner: two owners may share one host. */
  readonly #ourLinks = new Map<Owner, readonly number[]>();
  #last: Promise<unknown> = Promise.resolve();
  /** Of the link that was asked for last. `at`: monotonic. */
  #linkMtu?: { index: number; at: number; mtu: Promise<number | undefined> };

  constructor(options: HostOptions) {
    this.#options = options;
    this.#kernel = new Rtnetlink(options);
    this.#changes = new Debounce({ clock: options.clock, intervalMs: QUIET_MS, callsAtOnce: false }, () =>
      this.#listeners.tell(),
    );
  }

  async set(config: HostConfig, signal?: AbortSignal): Promise<HostReport> {
    return this.#alone(async (work) => {
      const { indexes, ...found } = await setHost({ kernel: this.#kernel, work }, config, signal);
      this.#ourLinks.set(config.owner, indexes);
      this.#watchOurLinks();
      return { ...work.report(), ...found };
    });
  }

  /** Removes all that it can, then throws Unavailable with what could not be removed. */
  async cleanUp(owner: Owner): Promise<void> {
    const { problems } = await this.#alone(async (work) => {
      await cleanUpHost({ kernel: this.#kernel, work }, owner);
      return work.report();
    });
    if (problems.length === 0) return;
    throw new TributaryError('Unavailable', problems.map(({ message }) => message).join('; '));
  }

  onChange(listener: () => void): () => void {
    this.#watch ??= new Watch({
      ...this.#options,
      changed: () => this.#changes.trigger(),
    });
    this.#watchOurLinks();
    return this.#listeners.add(listener);
  }

  #watchOurLinks(): void {
    this.#watch?.setOurLinks(new Set([...this.#ourLinks.values()].flat()));
  }

  async wireguardPeers(link: string): Promise<WireGuardPeerState[]> {
    return wireguardPeers(link);
  }

  async pathMtu(address: string): Promise<number | undefined> {
    if (isIP(address) === 0 || address.includes('%')) return undefined;
    try {
      const { mtu, index } = await lookUpRoute(this.#kernel, addressBytes(address));
      if (mtu !== undefined || index === undefined) return mtu;
      return await this.#mtuOf(index);
    } catch (error) {
      // The kernel has no route to the address.
      if (error instanceof KernelError) return undefined;
      throw error;
    }
  }

  async #mtuOf(index: number): Promise<number | undefined> {
    const now = this.#options.clock.monotonic();
    const last = this.#linkMtu;
    if (last?.index === index && now - last.at < SAME_MTU_MS) return last.mtu;
    const mtu = linkMtu(this.#kernel, index);
    this.#linkMtu = { index, at: now, mtu };
    return mtu;
  }

  async localRoutes(): Promise<string[]> {
    return foreignDestinations(await dumpRoutes(this.#kernel, linkIndex([])));
  }

  close(): void {
    this.#changes.stop();
    this.#watch?.close();
    this.#kernel.close();
  }

  /** Runs one `set` or `cleanUp` at a time. Listeners hear of our own writes after the last of them. */
  async #alone<T>(run: (work: Work) => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      const release = this.#changes.hold();
      try {
        return await run(new Work(this.#options.removed));
      } finally {
        release();
      }
    });
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** Tries to make a WireGuard link, since only then the kernel may load its module. Needs CAP_NET_ADMIN. */
export async function kernelHasWireGuard(options: Basics): Promise<boolean> {
  const kernel = new Rtnetlink(options);
  try {
    await createLink(kernel, 'gateway', { kind: 'wireguard', name: TRIAL, mtu: 1420, addresses: [] });
    return true;
  } catch (error) {
    return hasWireGuard(error);
  } finally {
    const links = await dumpLinks(kernel).catch(() => []);
    for (const { name, index } of links) {
      if (name === TRIAL) await deleteLink(kernel, index).catch(() => undefined);
    }
    kernel.close();
  }
}
