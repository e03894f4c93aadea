import { randomInt } from 'node:crypto';

import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { type Exchange, exchangeTcp, exchangeUdp, type ServerAddress, serverText } from './exchange.ts';
import {
  decodeReply,
  type DnsRecord,
  encodeQuery,
  isDnsName,
  nameKey,
  type QueryType,
  RCODE,
  type Reply,
} from './message.ts';

export interface ResolverOptions {
  /** Asked in this order, beginning with the server that answered last. */
  servers: readonly ServerAddress[];
  clock: Clock;
  /** How messages travel; sockets by default. */
  exchange?: { udp: Exchange; tcp: Exchange };
  /** How long a server has to answer in the first round. Doubled in the next one. Default 1 s. */
  timeoutMs?: number;
}

/** What the zone says of a name. Without records it says that there are none. */
export interface Answer<Type extends QueryType> {
  records: Extract<DnsRecord, { type: Type }>['data'][];
  /** How long that holds, aliases on the way included. Undefined where the answers do not say it. */
  ttlSeconds: number | undefined;
}

const ROUNDS = 2;
/** Aliases on the way from a name to its records. */
const MAX_ALIASES = 8;

/**
 * Asks DNS servers over UDP, and over TCP where an answer does not fit. Node's own resolver does not tell the TTLs of PTR and SRV
 * records.
 */
export class Resolver {
  readonly #options: ResolverOptions;
  /** Index of the server that answered last, so that a dead one is not waited for at every query. */
  #preferred = 0;

  constructor(options: ResolverOptions) {
    this.#options = options;
  }

  /**
   * Records of one type. Throws Unavailable when no server gave an answer (time-out, SERVFAIL, nonsense), which is
   * not the same as an answer that there is nothing; Invalid for a name that DNS cannot have.
   */
  async resolve<Type extends QueryType>(
    name: string,
    type: Type,
    signal: AbortSignal,
  ): Promise<Answer<Type>> {
    let current = name;
    let ttlSeconds = Infinity;
    for (let aliases = 0; aliases <= MAX_ALIASES;) {
      const reply = await this.#ask(current, type, signal);
      const path = follow(current, reply.records, MAX_ALIASES - aliases);
      aliases += path.aliases;
      const found = reply.records.filter((one) => one.type === type && nameKey(one.name) === path.end);
      const data = found.map((record) => record.data) as Answer<Type>['records'];
      ttlSeconds = Math.min(ttlSeconds, path.ttlSeconds, ...found.map((record) => record.ttlSeconds));
      const isEnd = found.length > 0 || path.aliases === 0 || reply.rcode === RCODE.nxDomain;
      if (isEnd && found.length === 0)
        ttlSeconds = Math.min(ttlSeconds, reply.negativeTtlSeconds ?? Infinity);
      if (isEnd) return { records: data, ttlSeconds: Number.isFinite(ttlSeconds) ? ttlSeconds : undefined };
      // The server knows only the alias. Its target may be in another zone.
      current = path.end;
    }
    throw new TributaryError('Unavailable', `${type} ${name}: more than ${MAX_ALIASES} aliases`);
  }

  async #ask(name: string, type: QueryType, signal: AbortSignal): Promise<Reply> {
    if (!isDnsName(name)) throw new TributaryError('Invalid', `"${name}" is not a name that DNS can have`);
    const { servers, timeoutMs = 1000 } = this.#options;
    const failures = new Map<string, string>();
    const first = this.#preferred;
    for (let round = 0; round < ROUNDS; round++) {
      for (let step = 0; step < servers.length; step++) {
        const index = (first + step) % servers.length;
        const server = servers[index] as ServerAddress;
        try {
          const reply = await this.#askServer(
            server,
            { name, type },
            { timeoutMs: timeoutMs * 2 ** round, signal },
          );
          this.#preferred = index;
          return reply;
        } catch (error) {
          signal.throwIfAborted();
          failures.set(serverText(server), errorMessage(error));
        }
      }
    }
    const why = [...failures].map(([server, failure]) => `${server}: ${failure}`).join('; ');
    throw new TributaryError(
      'Unavailable',
      `${type} ${name}: no DNS server answered: ${why || 'there is none'}`,
    );
  }

  /** Resolves to a reply with NOERROR or NXDOMAIN. Throws for everything else. */
  async #askServer(
    server: ServerAddress,
    question: { name: string; type: QueryType },
    limits: { timeoutMs: number; signal: AbortSignal },
  ): Promise<Reply> {
    const { udp, tcp } = this.#options.exchange ?? { udp: exchangeUdp, tcp: exchangeTcp };
    const ask = async (exchange: Exchange, edns: boolean): Promise<Reply> => {
      const query = { ...question, id: randomInt(0x1_0000) };
      using deadline = startDeadline(this.#options.clock, limits.timeoutMs, 'DNS', limits.signal);
      const read = (bytes: Buffer): Reply | undefined => decodeReply(bytes, query);
      return await exchange({
        server,
        message: encodeQuery(query, { edns }),
        read,
        signal: deadline.signal,
      });
    };
    let edns = true;
    let reply = await ask(udp, edns);
    if (reply.rcode === RCODE.formErr || reply.rcode === RCODE.notImp) {
      edns = false;
      reply = await ask(udp, edns);
    }
    if (reply.isTruncated) reply = await ask(tcp, edns);
    return checked(reply);
  }
}

/** Throws for a reply that only looks like an answer: another server may know more. */
function checked(reply: Reply): Reply {
  const { rcode, isReferral, records, isTruncated } = reply;
  if (rcode !== RCODE.noError && rcode !== RCODE.nxDomain) {
    throw new TributaryError('Unavailable', `rcode ${rcode} (${RCODE_NAMES[rcode] ?? 'unknown'})`);
  }
  if (rcode === RCODE.noError && isReferral && records.length === 0) {
    throw new TributaryError('Unavailable', 'the server does not answer for this name');
  }
  if (isTruncated) throw new TributaryError('Unavailable', 'the answer is truncated, even over TCP');
  return reply;
}

const RCODE_NAMES: Readonly<Record<number, string>> = {
  1: 'FORMERR',
  2: 'SERVFAIL',
  4: 'NOTIMP',
  5: 'REFUSED',
};

/** Walks the aliases in one answer; a loop ends it when the limit is used up. */
function follow(
  name: string,
  records: readonly DnsRecord[],
  limit: number,
): { end: string; aliases: number; ttlSeconds: number } {
  let end = nameKey(name);
  let ttlSeconds = Infinity;
  let aliases = 0;
  for (; aliases <= limit; aliases++) {
    const alias = records.find((record) => record.type === 'CNAME' && nameKey(record.name) === end);
    if (alias?.type !== 'CNAME') break;
    end = nameKey(alias.data);
    ttlSeconds = Math.min(ttlSeconds, alias.ttlSeconds);
  }
  return { end, aliases, ttlSeconds };
}
