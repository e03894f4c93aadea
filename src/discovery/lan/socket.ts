import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { DecodedPacket, Packet } from 'dns-packet';
import type { MulticastDNS } from 'multicast-dns';

import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import { TokenBucket, TokenBuckets } from '../../lib/token-bucket.ts';
import { type LanInterface, onLinkTest } from './interfaces.ts';
import {
  type LanLink,
  type LinkEvents,
  MDNS_PORT,
  type OpenLink,
  type PacketSource,
  type Refusal,
} from './link.ts';
import { readPacket } from './wire.ts';

const GROUP = { 4: '224.0.0.251', 6: 'ff02::fb' } as const;
/** How long the socket has to be bound. */
const OPEN_DEADLINE_MS = 5000;

/** RFC 6762, section 17. */
const MAX_PACKET_BYTES = 9000;
const HEADER_BYTES = 12;
/** Records and questions together. Compressed names make many of them expensive to read. */
const MAX_RECORDS = 512;
/** Packets from one address: enough for the announcement, the goodbye and the answers of a busy host. */
const PER_SOURCE = { burst: 100, perSecond: 20, maxKeys: 1024 };
/** Packets from all addresses together: a thousand clusters may answer the first query at once. */
const PER_LINK = { burst: 2000, perSecond: 500 };

/**
 * Opens one socket for each interface and family. The library multicast-dns encodes and decodes. It joins the group, too, but then
 * looks every five seconds whether it has, so we join: the membership lasts as long as the socket and the interface do.
 *
 * The socket is bound to the group and not to the wildcard address: then only datagrams to the group arrive, and those cross no
 * router. A host elsewhere that sends unicast DNS to port 5353 is not heard. Linux hands multicast of *every* interface
 * to every IPv4 socket of the group; the guard lets through what comes from the link of this interface. IPv6 sockets are
 * bound with the scope and hear only their interface.
 */
export function linkOpener(clock: Clock): OpenLink {
  return async (iface, family, events) => openLink(iface, family, events, clock);
}

// oxlint-disable-next-line max-params -- the port's three and the clock
async function openLink(
  iface: LanInterface,
  family: 4 | 6,
  events: LinkEvents,
  clock: Clock,
): Promise<LanLink> {
  // Only the gateway loads it, so that other roles do not pay for it.
  const { default: multicastDns } = await import('multicast-dns');
  const own = iface.addresses.find((address) => address.family === family)?.address ?? '';
  const group = family === 4 ? GROUP[4] : `${GROUP[6]}%${iface.name}`;
  const from = family === 4 ? own : `::%${iface.name}`;
  const socket = createSocket({
    type: `udp${family}`,
    reuseAddr: true,
    ...(family === 6 && { ipv6Only: true }),
  });
  const heard = guardSocket(socket, new Guard(iface, clock), events);
  const mdns = multicastDns({
    socket,
    type: `udp${family}`,
    ip: group,
    bind: group,
    interface: from,
    port: MDNS_PORT,
    multicast: false,
  });
  mdns.on('packet', (packet: DecodedPacket, from: RemoteInfo) => {
    const message = readPacket(packet);
    if (message !== undefined) events.packet(message, from);
  });
  // Errors of the system have a code; without one it is the packet that could not be decoded just now.
  mdns.on('warning', (error: Error) => {
    if ('code' in error) events.trouble(error);
    else events.refused('Malformed', heard.from);
  });
  await ready(mdns, clock, iface.name);
  join(socket, { group, from, mdns, name: iface.name });
  mdns.on('error', (error: Error) => events.trouble(error));
  return {
    family,
    send: async (packet, to) => {
      const error = await send(mdns, packet, to);
      if (error !== undefined) events.trouble(error);
    },
    close: async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      mdns.destroy(resolve);
      await promise;
    },
  };
}

/** RFC 6762, section 11: the TTL is 255 for all that is sent. Our own packets come back, as those of another program on this host do. */
function join(
  socket: Socket,
  { group, from, mdns, name }: { group: string; from: string; mdns: MulticastDNS; name: string },
): void {
  try {
    socket.addMembership(group, from);
    socket.setMulticastInterface(from);
    socket.setMulticastTTL(255);
    socket.setMulticastLoopback(true);
    socket.setTTL(255);
  } catch (cause) {
    mdns.destroy();
    throw new TributaryError('Unreachable', `mDNS cannot be spoken on ${name}`, { cause });
  }
}

/** The library decodes whatever its socket emits, so what is refused must not be emitted. */
function guardSocket(socket: Socket, guard: Guard, events: LinkEvents): { from: PacketSource } {
  const heard: { from: PacketSource } = { from: { address: '', port: 0 } };
  const emit = socket.emit.bind(socket) as (event: string, ...args: unknown[]) => boolean;
  socket.emit = (event: string, ...args: unknown[]): boolean => {
    if (event !== 'message') return emit(event, ...args);
    const [bytes, from] = args as [Buffer, RemoteInfo];
    const why = guard.refusal(bytes, from);
    heard.from = from;
    if (why === undefined) return emit(event, ...args);
    events.refused(why, from);
    return true;
  };
  return heard;
}

async function ready(mdns: MulticastDNS, clock: Clock, name: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (cause: unknown): void => {
    mdns.destroy();
    reject(new TributaryError('Unreachable', `mDNS cannot be spoken on ${name}`, { cause }));
  };
  const cancel = clock.after(OPEN_DEADLINE_MS, () => fail(new Error('the socket did not open')));
  mdns.once('ready', resolve);
  mdns.once('error', fail);
  try {
    await promise;
  } finally {
    cancel();
    mdns.off('error', fail);
  }
}

/** Resolves when the datagram is with the kernel, or lost. */
async function send(
  mdns: MulticastDNS,
  packet: Packet,
  to: PacketSource | undefined,
): Promise<Error | undefined> {
  const { promise, resolve } = Promise.withResolvers<Error | undefined>();
  const done = (error: Error | null): void => resolve(error ?? undefined);
  const { questions = [], answers = [], authorities = [], additionals = [], ...head } = packet;
  const whole = { ...head, questions, answers, authorities, additionals };
  try {
    if (packet.type === 'query') mdns.query(whole, done);
    else if (to === undefined) mdns.respond(whole, done);
    else mdns.respond(whole, { address: to.address, port: to.port }, done);
  } catch (error) {
    resolve(error as Error);
  }
  return promise;
}

/** Decides, before anything of it is parsed, whether a datagram is looked at. */
export class Guard {
  readonly #onLink: (source: string) => boolean;
  readonly #perSource: TokenBuckets;
  readonly #perLink: TokenBucket;

  constructor(iface: LanInterface, clock: Clock) {
    this.#onLink = onLinkTest(iface);
    this.#perSource = new TokenBuckets({ clock, ...PER_SOURCE });
    this.#perLink = new TokenBucket({ clock, ...PER_LINK });
  }

  /** Undefined: look at it. */
  refusal(bytes: Buffer, source: PacketSource): Refusal | undefined {
    if (!this.#onLink(source.address)) return 'OffLink';
    if (bytes.length > MAX_PACKET_BYTES) return 'TooLarge';
    if (bytes.length < HEADER_BYTES) return 'TooShort';
    const counts = [4, 6, 8, 10].map((offset) => bytes.readUInt16BE(offset));
    if (counts.reduce((sum, count) => sum + count, 0) > MAX_RECORDS) return 'TooManyRecords';
    // RFC 6762, section 6: responses come from port 5353 alone.
    const response = (bytes.readUInt16BE(2) & 0x80_00) !== 0;
    if (response && source.port !== MDNS_PORT) return 'WrongPort';
    return this.#perSource.of(source.address).tryTake(1) && this.#perLink.tryTake(1) ? undefined : 'TooFast';
  }
}
