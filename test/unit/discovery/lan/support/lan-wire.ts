import { decode, type DecodedPacket, encode } from 'dns-packet';

import type { LanInterface } from '../../../../../src/discovery/lan/interfaces.ts';
import {
  type LinkEvents,
  MDNS_PORT,
  type OpenLink,
  type PacketSource,
} from '../../../../../src/discovery/lan/link.ts';
import { readPacket } from '../../../../../src/discovery/lan/wire.ts';

interface Member {
  address: string;
  events: LinkEvents;
}

/** A network segment in memory: what one sends comes to all, encoded and decoded, the sender among them. */
export class LanWire {
  readonly #members = new Set<Member>();
  /** All that was sent, the latest last. */
  readonly sent: { from: PacketSource; packet: DecodedPacket; to?: PacketSource }[] = [];
  /** Nothing gets through while it is cut. */
  cut = false;

  readonly open: OpenLink = async (iface, family, events) => {
    const address = iface.addresses.find((own) => own.family === family)?.address ?? '';
    const member = { address, events };
    this.#members.add(member);
    return {
      family,
      send: async (packet, to) => {
        if (this.#members.has(member)) this.deliver(encode(packet), { address, port: MDNS_PORT }, to);
      },
      close: async () => void this.#members.delete(member),
    };
  };

  /** Takes a host off without its goodbye. */
  crash(address: string): void {
    for (const member of this.#members) if (member.address === address) this.#members.delete(member);
  }

  deliver(bytes: Buffer, from: PacketSource, to?: PacketSource): void {
    const packet = decode(bytes);
    this.sent.push({ from, packet, ...(to !== undefined && { to }) });
    if (this.cut) return;
    for (const { address, events } of this.#members) {
      if (to !== undefined && to.address !== address) continue;
      const message = readPacket(decode(bytes));
      if (message !== undefined) events.packet(message, from);
    }
  }
}

/** A host's only interface, with one address. */
export const onlyInterface = (address: string, name = 'eth0'): LanInterface => ({
  name,
  addresses: [{ address, family: address.includes(':') ? 6 : 4, prefix: address.includes(':') ? 64 : 24 }],
});
