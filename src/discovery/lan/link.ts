import type { Packet } from 'dns-packet';

import type { LanInterface } from './interfaces.ts';
import type { LanQuery, LanResponse } from './wire.ts';

export interface PacketSource {
  address: string;
  port: number;
}

export const MDNS_PORT = 5353;

export type Refusal = 'OffLink' | 'TooLarge' | 'TooShort' | 'TooManyRecords' | 'TooFast' | 'WrongPort';

/** The multicast group of one address family, joined on one interface. */
export interface LanLink {
  readonly family: 4 | 6;
  /** Sends to the group, or to one host of the link. What cannot be sent is lost, as datagrams are. */
  send(packet: Packet, to?: PacketSource): Promise<void>;
  close(): Promise<void>;
}

export interface LinkEvents {
  packet(message: LanQuery | LanResponse, from: PacketSource): void;
  refused(why: Refusal | 'Malformed', from: PacketSource): void;
  /** Sending or joining failed. The link goes on. */
  trouble(error: Error): void;
}

/** Opens a link. Tests use a wire in memory instead of sockets. */
export type OpenLink = (iface: LanInterface, family: 4 | 6, events: LinkEvents) => Promise<LanLink>;
