import type { Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Quota } from '../../lib/quota.ts';
import { Browser } from './browser.ts';
import { ServiceCache } from './cache.ts';
import { hasFamily, interfaceKey, type LanInterface } from './interfaces.ts';
import type { LanLink, OpenLink, PacketSource } from './link.ts';
import { ownRecords, type OwnService } from './own-records.ts';
import { Responder } from './responder.ts';
import type { LanQuery, LanResponse } from './wire.ts';

export interface SegmentOptions extends Basics {
  random: Random;
  quota: Quota;
  openLink: OpenLink;
  maxIntervalMs: number;
  isOwnAddress: (address: string) => boolean;
  onConflict: () => void;
  onChange: (clusterID: string) => void;
  onRefused: (why: string, source: string) => void;
}

interface Open {
  link: LanLink;
  responder: Responder;
}

/** Everything on one interface: a link for each address family, and one cache for both. */
export class Segment {
  readonly cache: ServiceCache;
  readonly #options: SegmentOptions;
  readonly #browser: Browser;
  readonly #open = new Map<4 | 6, Open>();
  #iface: LanInterface;
  readonly #problems = new Map<4 | 6, string>();
  #service: OwnService | undefined;
  #closed = false;

  constructor(iface: LanInterface, options: SegmentOptions) {
    this.#iface = iface;
    this.#options = options;
    const { clock, random, quota, onChange, onRefused, maxIntervalMs } = options;
    this.cache = new ServiceCache({
      name: iface.name,
      quota,
      random,
      now: () => clock.monotonic(),
      onChange,
      onRefused,
    });
    this.#browser = new Browser({
      clock,
      random,
      cache: this.cache,
      maxIntervalMs,
      links: () => [...this.#open.values()].map(({ link }) => link),
    });
  }

  get interface(): LanInterface {
    return this.#iface;
  }

  /** A link could not be opened, and is to be tried again. */
  get isTroubled(): boolean {
    return [...this.#problems.keys()].some((family) => hasFamily(this.#iface, family));
  }

  /** Opens links that are not open, and opens all anew where addresses have changed. What was seen stays until it expires. */
  async follow(iface: LanInterface): Promise<void> {
    if (interfaceKey(iface) !== interfaceKey(this.#iface)) {
      await this.#closeLinks();
      this.#iface = iface;
    }
    let opened = false;
    for (const family of [4, 6] as const) {
      if (!hasFamily(this.#iface, family) || this.#open.has(family)) continue;
      opened = (await this.#openLink(family)) || opened;
    }
    if (opened && !this.#closed) this.#browser.start();
  }

  /** Claims the names of the service on all links. Undefined: takes back what was announced. */
  async claim(service: OwnService | undefined, waitMs = 0): Promise<void> {
    this.#service = service;
    const responders = [...this.#open.values()].map(({ responder }) => responder);
    await Promise.all(responders.map(async (responder) => responder.withdraw()));
    // Another call may have changed the service while the goodbye went out.
    const current = this.#service;
    if (current === undefined || this.#closed) return;
    for (const responder of responders) responder.claim(ownRecords(current, this.#iface), waitMs);
  }

  /** Announces other data of the service under the same name. */
  update(service: OwnService): void {
    this.#service = service;
    for (const { responder } of this.#open.values()) responder.update(ownRecords(service, this.#iface));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#browser.stop();
    await this.#closeLinks();
    this.cache.clear();
  }

  async #openLink(family: 4 | 6): Promise<boolean> {
    const { clock, random, log, openLink, isOwnAddress, onConflict, onRefused } = this.#options;
    const fields = { interface: this.#iface.name, family: `IPv${family}` };
    let open: Open | undefined;
    try {
      const link = await openLink(this.#iface, family, {
        packet: (message, from) => this.#receive(open, message, from),
        refused: (why, from) => onRefused(why, from.address),
        trouble: (error) => log.debug('mDNS datagram lost', { ...fields, error: errorMessage(error) }),
      });
      const responder = new Responder({ clock, random, link, isOwnAddress, onConflict });
      open = { link, responder };
    } catch (error) {
      // It is tried again and again, but logged once.
      const problem = errorMessage(error);
      if (this.#problems.get(family) !== problem) {
        log.warn('cannot speak mDNS on an interface', { ...fields, error: problem });
      }
      this.#problems.set(family, problem);
      return false;
    }
    if (this.#closed) {
      await open.link.close();
      return false;
    }
    this.#open.set(family, open);
    this.#problems.delete(family);
    log.info('speaking mDNS', fields);
    if (this.#service !== undefined) open.responder.claim(ownRecords(this.#service, this.#iface));
    return true;
  }

  /** Nothing that a stranger sends may end the program. */
  #receive(open: Open | undefined, message: LanQuery | LanResponse, from: PacketSource): void {
    if (open === undefined || this.#closed) return;
    try {
      if (message.kind === 'query') {
        open.responder.receiveQuery(message, from);
      } else {
        open.responder.receiveResponse(message.records);
        this.#browser.receive(message.records, from.address);
      }
    } catch (error) {
      this.#options.onRefused(`not understood: ${errorMessage(error)}`, from.address);
    }
  }

  async #closeLinks(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(
      open.map(async ({ link, responder }) => {
        await responder.withdraw();
        await link.close();
      }),
    );
  }
}
