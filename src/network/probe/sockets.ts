import { createSocket, type Socket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';

import type { Clock } from '../../lib/clock.ts';

/** What probes are sent with: the one place here that touches the network. */
export interface ProbeSockets {
  /** Binds a UDP socket to that address of our own. Rejects while the host does not have the address. Port 0: any free one. */
  bind(address: string, port: number, listener: ProbeListener): Promise<ProbeSocket>;
  /** Whether that host's kernel answers for a TCP port, open or not. */
  knock(knock: Knock): Promise<boolean>;
}

export interface Knock {
  /** Own address. */
  source: string;
  address: string;
  /** TCP. */
  port: number;
  timeoutMs: number;
}

export type ProbeListener = (bytes: Uint8Array, from: { address: string; port: number }) => void;

export interface ProbeSocket {
  /** Rejects where the kernel refuses the packet, for example one that is larger than the link allows. */
  send(bytes: Uint8Array, address: string, port: number): Promise<void>;
  close(): void;
}

/** Counts the packets that are sent with those sockets; what the kernel refuses to send is no packet. */
export function countingSockets(
  sockets: ProbeSockets,
): ProbeSockets & { readonly sentPackets: () => number } {
  let sent = 0;
  return {
    sentPackets: () => sent,
    knock: async (...question) => sockets.knock(...question),
    async bind(address, port, listener) {
      const socket = await sockets.bind(address, port, listener);
      return {
        close: () => socket.close(),
        async send(bytes, to, toPort) {
          // Counted before, so that the kernel's own count is never ahead.
          sent += 1;
          try {
            await socket.send(bytes, to, toPort);
          } catch (error) {
            sent -= 1;
            throw error;
          }
        },
      };
    },
  };
}

/** The sockets of this machine. */
export function systemSockets(clock: Clock): ProbeSockets {
  return { bind, knock: async (what) => knock(clock, what) };
}

async function bind(address: string, port: number, listener: ProbeListener): Promise<ProbeSocket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', reuseAddr: false });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  socket.bind({ address, port, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.off('error', reject);
  // `send` returns errors of single packets. What ICMP reports later says no more than a missing answer.
  socket.on('error', () => undefined);
  socket.on('message', (bytes, from) => listener(bytes, from));
  socket.unref();
  return { send: async (bytes, to, toPort) => send(socket, bytes, to, toPort), close: () => socket.close() };
}

async function send(socket: Socket, bytes: Uint8Array, address: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.send(bytes, port, address, (error) => (error === null ? resolve() : reject(error)));
  return promise;
}

async function knock(clock: Clock, { source, address, port, timeoutMs }: Knock): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address, port, localAddress: source });
  const cancel = clock.after(timeoutMs, () => resolve(false));
  socket.once('connect', () => resolve(true));
  // A reset is an answer: packets go through in both directions.
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  try {
    return await promise;
  } finally {
    cancel();
    socket.destroy();
  }
}
