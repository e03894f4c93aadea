/** Sends datagrams to the mDNS group as a stranger may: options as JSON on standard input. For LanHost. */
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';

export interface UdpSendOptions {
  /** The address that the datagrams come from; one of the host's. */
  from: string;
  /** The interface's own address, which chooses the interface. */
  via: string;
  /** Base64. */
  packets: readonly string[];
  /** Default the group's; an address of a host for unicast. */
  to?: string;
  port?: number;
}

const GROUP = '224.0.0.251';
const MDNS_PORT = 5353;
const AT_ONCE = 50;

const {
  from,
  via,
  packets,
  to = GROUP,
  port = MDNS_PORT,
} = JSON.parse(readFileSync(0, 'utf8')) as UdpSendOptions;
const socket = createSocket({ type: 'udp4', reuseAddr: true });
await new Promise<void>((resolve) => socket.bind(port, from, resolve));
socket.setMulticastInterface(via);
for (const [index, packet] of packets.entries()) {
  await new Promise<void>((resolve) =>
    socket.send(Buffer.from(packet, 'base64'), MDNS_PORT, to, () => resolve()),
  );
  if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
}
await new Promise<void>((resolve) => socket.close(resolve));
