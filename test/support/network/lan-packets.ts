/** mDNS packets as others make them. */
import { type Answer, encode } from 'dns-packet';

export interface AnnouncedCluster {
  id: string;
  address: string;
  label?: string;
  name?: string;
  port?: number;
  ttl?: number;
  txt?: readonly string[];
}

const SERVICE = '_tributary._tcp.local';

/** All records of an announcement. */
export function announcementRecords({ id, address, ...rest }: AnnouncedCluster): Answer[] {
  const { label = id.slice(0, 8), name = label, port = 7443, ttl = 120 } = rest;
  const { txt = [`id=${id}`, `name=${name}`, 'v=1'] } = rest;
  const instance = `${label}.${SERVICE}`;
  const host = `${label}.local`;
  return [
    { name: SERVICE, type: 'PTR', ttl, data: instance },
    { name: instance, type: 'SRV', ttl, flush: true, data: { target: host, port } },
    { name: instance, type: 'TXT', ttl, flush: true, data: txt.map((text) => Buffer.from(text)) },
    { name: host, type: address.includes(':') ? 'AAAA' : 'A', ttl, flush: true, data: address },
  ];
}

/** A response that announces all of them. */
export const announcementPacket = (...clusters: readonly AnnouncedCluster[]): Buffer =>
  encode({ type: 'response', flags: 1 << 10, answers: clusters.flatMap(announcementRecords) });

/** A response whose one answer has a name that points at itself, or in a circle of two. */
export function loopPacket(hops: 1 | 2): Buffer {
  const header = Buffer.from([0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  const pointers = hops === 1 ? [0xc0, 12] : [0xc0, 14, 0xc0, 12];
  return Buffer.concat([header, Buffer.from([...pointers, 0, 12, 0, 1, 0, 0, 0, 120, 0, 2, 0xc0, 12])]);
}
