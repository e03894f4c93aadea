/** Links of the kernel: reading, and the writes that diff-links.ts decides on. */
import { addressBytes, addressText, macBytes, macText } from './address.ts';
import {
  type Attribute,
  decodeAttributes,
  encodeAttributes,
  optionalU32,
  readText,
  readU32,
  text,
  u16be,
  u32,
  u8,
} from './attributes.ts';
import { ALIASES, type LinkConfig, type Owner, PROTOCOLS, type VxlanLink } from './host-config.ts';
import type { KernelLink, KernelVxlan, LinkChange } from './diff-links.ts';
import { DELETE_LINK, GET_LINK, LINK_BYTES, linkHeader, NEW_LINK } from './messages.ts';
import { CREATE, EXCLUSIVE, type Rtnetlink } from './rtnetlink.ts';

/** IFLA_* of linux/if_link.h. */
const IFLA = { address: 1, name: 3, mtu: 4, info: 18, alias: 20, group: 27, mask: 29 } as const;
const INFO = { kind: 1, data: 2 } as const;
const VXLAN = { id: 1, local: 4, learning: 7, port: 15, local6: 17 } as const;
const IFF_UP = 1;
/** RTEXT_FILTER_SKIP_STATS. */
const WITHOUT_STATISTICS = 8;

export async function dumpLinks(kernel: Rtnetlink): Promise<KernelLink[]> {
  const mask = encodeAttributes([[IFLA.mask, u32(WITHOUT_STATISTICS)]]);
  return (await kernel.dump(GET_LINK, Buffer.concat([linkHeader({}), mask]))).map(parseLink);
}

/** Its MTU in bytes. */
export async function linkMtu(kernel: Rtnetlink, index: number): Promise<number | undefined> {
  const answer = await kernel.get(GET_LINK, linkHeader({ index }));
  return answer && parseLink(answer).mtu;
}

function parseLink(message: Buffer): KernelLink {
  const attributes = decodeAttributes(message.subarray(LINK_BYTES));
  const info = decodeAttributes(attributes.get(IFLA.info) ?? Buffer.alloc(0));
  const kind = info.get(INFO.kind);
  const alias = attributes.get(IFLA.alias);
  const mac = attributes.get(IFLA.address);
  const data = info.get(INFO.data);
  const isVxlan = kind !== undefined && readText(kind) === 'vxlan' && data !== undefined;
  return {
    index: readU32(message, 4),
    name: readText(attributes.get(IFLA.name) ?? Buffer.alloc(0)),
    isUp: (readU32(message, 8) & IFF_UP) !== 0,
    mtu: optionalU32(attributes.get(IFLA.mtu)) ?? 0,
    group: optionalU32(attributes.get(IFLA.group)) ?? 0,
    ...(kind && { kind: readText(kind) }),
    ...(alias && { alias: readText(alias) }),
    ...(mac && { macAddress: macText(mac) }),
    ...(isVxlan && { vxlan: parseVxlan(data) }),
  };
}

function parseVxlan(data: Buffer): KernelVxlan {
  const attributes = decodeAttributes(data);
  const local = attributes.get(VXLAN.local) ?? attributes.get(VXLAN.local6);
  return {
    vni: optionalU32(attributes.get(VXLAN.id)) ?? 0,
    port: attributes.get(VXLAN.port)?.readUInt16BE(0) ?? 0,
    isLearning: attributes.get(VXLAN.learning)?.[0] !== 0,
    ...(local && { local: addressText(local) }),
  };
}

/**
 * Makes the link, still down. The alias cannot be given on creation, so the group marks it until `changeLink` has set the
 * alias: what a crash leaves in between is known as ours.
 */
export async function createLink(kernel: Rtnetlink, owner: Owner, link: LinkConfig): Promise<void> {
  const data = link.kind === 'vxlan' ? [[INFO.data, vxlanData(link)] as const] : [];
  const attributes: Attribute[] = [
    [IFLA.name, text(link.name)],
    [IFLA.mtu, u32(link.mtu)],
    [IFLA.group, u32(PROTOCOLS[owner])],
    [IFLA.info, [[INFO.kind, text(link.kind)], ...data]],
  ];
  if (link.kind === 'vxlan') attributes.push([IFLA.address, macBytes(link.macAddress)]);
  await kernel.write(
    NEW_LINK,
    CREATE | EXCLUSIVE,
    Buffer.concat([linkHeader({}), encodeAttributes(attributes)]),
  );
}

function vxlanData(link: VxlanLink): Attribute[] {
  const local = addressBytes(link.local);
  return [
    [VXLAN.id, u32(link.vni)],
    [local.length === 4 ? VXLAN.local : VXLAN.local6, local],
    [VXLAN.learning, u8(0)],
    [VXLAN.port, u16be(link.port)],
  ];
}

export async function changeLink(kernel: Rtnetlink, owner: Owner, change: LinkChange): Promise<void> {
  const attributes: Attribute[] = [];
  if (change.adopt) attributes.push([IFLA.alias, Buffer.from(ALIASES[owner])], [IFLA.group, u32(0)]);
  if (change.mtu !== undefined) attributes.push([IFLA.mtu, u32(change.mtu)]);
  if (change.macAddress !== undefined) attributes.push([IFLA.address, macBytes(change.macAddress)]);
  const flags = change.up ? { flags: IFF_UP, change: IFF_UP } : {};
  const header = linkHeader({ index: change.index, ...flags });
  await kernel.write(NEW_LINK, 0, Buffer.concat([header, encodeAttributes(attributes)]));
}

export async function deleteLink(kernel: Rtnetlink, index: number): Promise<void> {
  await kernel.write(DELETE_LINK, 0, linkHeader({ index }));
}
