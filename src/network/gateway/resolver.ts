import { Resolver } from 'node:dns/promises';

import { MOST_NAME_SERVERS } from '../../api/own-network.ts';
import type { Basics } from '../../lib/basics.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { joinEndpoint, splitEndpoint } from '../../lib/endpoint.ts';
import { errorMessage } from '../../lib/errors.ts';
import { formatAddress, parseAddress, type PrefixSet } from '../../lib/prefix.ts';
import { NEVER_DIALLED } from '../../lib/never-dialled.ts';

/** Finds the addresses of a name. It must end by itself, and must not hold a thread meanwhile. */
export type LookUp = (name: string) => Promise<readonly string[]>;

interface EndpointResolverOptions extends Basics {
  lookUp: LookUp;
  /** Called when the addresses of a name have changed. */
  onChange: () => void;
}

interface Known {
  addresses: readonly string[];
  /** Monotonic; when to ask again. */
  until: number;
  asking: boolean;
  usedAt: number;
}

const FRESH_MS = 30_000;
const AGAIN_MS = 5000;
const ANSWER_MS = 3000;
const FORGET_MS = 10 * 60_000;
/** Bounds on what a peer may cost us, since it chooses its endpoints. */
const MAX_ENDPOINTS = 8;
const MAX_ADDRESSES = 4;
const MAX_QUESTIONS = 8;

/**
 * Makes `host:port` of peers literal. Never waits: a name that is not known yet is left out and asked for. A name that
 * is no longer answered keeps its last addresses.
 */
export class EndpointResolver {
  readonly #options: EndpointResolverOptions;
  readonly #known = new Map<string, Known>();
  #asking = 0;

  constructor(options: EndpointResolverOptions) {
    this.#options = options;
  }

  /** Literal endpoints in the order given, without those to which no tunnel may lead. */
  literal(endpoints: readonly string[], forbidden: PrefixSet): string[] {
    const now = this.#options.clock.monotonic();
    this.#forget(now);
    const found = endpoints.slice(0, MAX_ENDPOINTS).flatMap((endpoint) => {
      const parts = splitEndpoint(endpoint);
      if (parts === undefined) return [];
      const { host, port } = parts;
      const addresses = parseAddress(host) === undefined ? this.#addressesOf(host, now) : [host];
      return addresses.flatMap((address) => dialable(address, port, forbidden));
    });
    return [...new Set(found)];
  }

  #addressesOf(name: string, now: number): readonly string[] {
    const known = this.#known.get(name) ?? { addresses: [], until: now, asking: false, usedAt: now };
    known.usedAt = now;
    this.#known.set(name, known);
    if (known.until <= now && !known.asking && this.#asking < MAX_QUESTIONS) void this.#ask(name, known);
    return known.addresses;
  }

  async #ask(name: string, known: Known): Promise<void> {
    const { clock, log, lookUp, onChange } = this.#options;
    using deadline = startDeadline(clock, ANSWER_MS, `DNS for ${name}`);
    known.asking = true;
    this.#asking++;
    try {
      const addresses = (await untilAborted(lookUp(name), deadline.signal)).slice(0, MAX_ADDRESSES);
      const changed = addresses.join() !== known.addresses.join();
      known.addresses = addresses;
      known.until = clock.monotonic() + FRESH_MS;
      if (changed) onChange();
    } catch (error) {
      known.until = clock.monotonic() + AGAIN_MS;
      log.debug('a tunnel endpoint cannot be resolved', { name, error: errorMessage(error) });
    } finally {
      known.asking = false;
      this.#asking--;
    }
  }

  #forget(now: number): void {
    for (const [name, { usedAt, asking }] of this.#known) {
      if (!asking && now - usedAt > FORGET_MS) this.#known.delete(name);
    }
  }
}

/** The endpoint as WireGuard writes it. Empty where it must not be dialled. */
function dialable(text: string, port: number, forbidden: PrefixSet): string[] {
  const address = parseAddress(text);
  if (address === undefined) return [];
  // An endpoint inside our own pods or views would lead the tunnel through itself. One at our Services or nodes would make us send to
  // places that the peer itself could not reach.
  if (NEVER_DIALLED.contains(address) || forbidden.contains(address)) return [];
  return [joinEndpoint(formatAddress(address), port)];
}

/** Both tries together take about as long as EndpointResolver waits. */
const ANSWER = { timeout: 1000, tries: 2 };

/**
 * Addresses of a name by DNS, IPv4 first. Not by `dns.lookup`: that asks the C library on one of libuv's four threads,
 * which it holds for as long as a name server is silent. Peers choose these names, so a few of them could keep every
 * file from being read. The price: /etc/hosts and search domains do not count.
 *
 * @param servers for tests; default: those of /etc/resolv.conf, read each time, since a host may move.
 */
export async function lookUpByDns(name: string, servers?: readonly string[]): Promise<string[]> {
  const resolver = new Resolver(ANSWER);
  if (servers !== undefined) resolver.setServers(servers);
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
  return [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}

/** The DNS servers of /etc/resolv.conf that are not on this host itself, in order. */
export const nameServersOfHost = (): string[] => nameServersIn(new Resolver(ANSWER).getServers());

export const nameServersIn = (servers: readonly string[]): string[] =>
  servers
    .flatMap((text) => {
      // With another port than 53, c-ares writes one: host:port.
      const address = parseAddress(text) ?? parseAddress(splitEndpoint(text)?.host ?? '');
      const isElsewhere = address !== undefined && !NEVER_DIALLED.contains(address);
      return isElsewhere ? [formatAddress(address)] : [];
    })
    .toSorted()
    .slice(0, MOST_NAME_SERVERS);
