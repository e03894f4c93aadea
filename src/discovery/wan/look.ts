import { type AnnouncedHost, parseAnnouncement } from '../announcement.ts';
import { type Candidate, SERVICE_TYPE } from '../candidates.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import { nameKey } from './message.ts';
import type { Resolver } from './resolver.ts';

/** A cluster as a zone lists it. */
export type ListedCluster = Omit<Candidate, 'expiresAt' | 'searchDomain'>;

/** What a look found of one service instance. `unanswered`: nothing, so what was known still holds. */
export type InstanceLook =
  | { kind: 'found'; cluster: ListedCluster; ttlSeconds: number }
  | { kind: 'refused'; why: string }
  | { kind: 'unanswered'; why: string };

/** One look at a domain. */
export interface DomainLook {
  /** By instance name in lower case: all that are listed, up to the limit. */
  instances: ReadonlyMap<string, InstanceLook>;
  /** How many are listed beyond the limit, and are passed over. */
  surplus: number;
  /** How long the list itself holds. Undefined where the zone does not say. */
  ttlSeconds: number | undefined;
}

/** The most instances of one domain. A company has a handful of clusters; whoever needs more uses more domains. */
export const MAX_INSTANCES = 100;
/** SRV records of one instance: addresses of one cluster. */
const MAX_HOSTS = 4;
const MAX_TTL_SECONDS = 86_400;
const CONCURRENCY = 8;
/** How long a whole look may take. What has not been answered by then is asked for at the next look. */
const LOOK_MS = 30_000;

/**
 * Asks for PTR, then SRV and TXT, then A and AAAA (RFC 6763, sections 4 and 5). Throws Unavailable when there is no answer for the
 * list. A single instance without an answer does not hurt the others.
 */
export async function lookAt(
  domain: string,
  { resolver, clock, signal }: { resolver: Pick<Resolver, 'resolve'>; clock: Clock; signal: AbortSignal },
): Promise<DomainLook> {
  using deadline = startDeadline(clock, LOOK_MS, `look at ${domain}`, signal);
  const look = await lookInTime(domain, resolver, deadline.signal);
  signal.throwIfAborted();
  return look;
}

async function lookInTime(
  domain: string,
  resolver: Pick<Resolver, 'resolve'>,
  signal: AbortSignal,
): Promise<DomainLook> {
  const list = await resolver.resolve(`${SERVICE_TYPE}.${domain}`, 'PTR', signal);
  const names = new Map(list.records.map((name) => [nameKey(name), name]));
  // Always in the same order, so that the same ones are taken when there are too many.
  const keys = [...names.keys()].toSorted();
  const instances = new Map<string, InstanceLook>();
  await eachAtOnce(keys.slice(0, MAX_INSTANCES), CONCURRENCY, async (key) => {
    instances.set(key, await lookAtInstance(names.get(key) ?? key, resolver, signal));
  });
  return { instances, surplus: Math.max(0, keys.length - MAX_INSTANCES), ttlSeconds: list.ttlSeconds };
}

async function lookAtInstance(
  name: string,
  resolver: Pick<Resolver, 'resolve'>,
  signal: AbortSignal,
): Promise<InstanceLook> {
  const ttls: number[] = [MAX_TTL_SECONDS];
  const resolve = async <Type extends 'SRV' | 'TXT' | 'A' | 'AAAA'>(
    host: string,
    type: Type,
  ): Promise<Awaited<ReturnType<typeof resolver.resolve<Type>>>['records']> => {
    const { records, ttlSeconds } = await resolver.resolve(host, type, signal);
    if (records.length > 0 && ttlSeconds !== undefined) ttls.push(ttlSeconds);
    return records;
  };
  try {
    const [services, texts] = await Promise.all([resolve(name, 'SRV'), resolve(name, 'TXT')]);
    const hosts: AnnouncedHost[] = [];
    for (const { port, target } of inOrder(services).slice(0, MAX_HOSTS)) {
      // RFC 2782: a target of "." says that the service is decidedly not there.
      if (target === '') continue;
      const [v4, v6] = await Promise.all([resolve(target, 'A'), resolve(target, 'AAAA')]);
      // Servers rotate addresses. In a fixed order nothing seems to change.
      hosts.push({ port, addresses: [...inText(v4), ...inText(v6)] });
    }
    const [txt] = texts;
    if (txt === undefined || services.length === 0) throw missing(services.length === 0 ? 'SRV' : 'TXT');
    return { kind: 'found', cluster: parseAnnouncement({ txt, hosts }), ttlSeconds: Math.min(...ttls) };
  } catch (error) {
    const why = `${name}: ${errorMessage(error)}`;
    if (hasCode(error, 'Invalid')) return { kind: 'refused', why };
    return { kind: 'unanswered', why };
  }
}

/** As in RFC 2782, but without chance: every look gives the same order. */
const inOrder = <Service extends { priority: number; weight: number; target: string }>(
  services: readonly Service[],
): Service[] =>
  services.toSorted(
    (a, b) => a.priority - b.priority || b.weight - a.weight || (a.target < b.target ? -1 : 1),
  );

const inText = (texts: readonly string[]): string[] => texts.toSorted((a, b) => (a < b ? -1 : 1));

const missing = (type: string): TributaryError =>
  new TributaryError('Invalid', `announcement refused: it has no ${type} record`);
