import { addressBytes, addressText, canonicalAddress, macBytes, macText } from './addresses.ts';
import {
  ALIASES,
  type HostConfig,
  type LinkConfig,
  type Owner,
  PROTOCOLS,
  type VxlanLink,
} from './host-config.ts';
import {
  type Attribute,
  decodeAttributes,
  DELETE_LINK,
  encodeAttributes,
  GET_LINK,
  LINK_BYTES,
  linkHeader,
  NEW_LINK,
  optionalU32,
  readText,
  readU32,
  text,
  u16be,
  u32,
  u8,
} from './messages.ts';
import { CREATE, EXCLUSIVE, type Rtnetlink } from './rtnetlink.ts';
import { hasWireGuard, isMadeHere, isWantedWireGuard, noWireGuard, wireguardOf } from './wireguard/choice.ts';
import type { HostContext, OurLinks } from './work.ts';

/** Makes the links of the config. Resolves to all links that the host has afterwards. */
export async function setLinks({ kernel, work }: HostContext, config: HostConfig): Promise<KernelLink[]> {
  const { owner, links } = config;
  const diff = diffLinks(owner, links, await dumpLinks(kernel));
  for (const { message } of diff.refused) work.refuse(message);
  for (const { name, index } of diff.remove) {
    await work.remove(`link ${name}`, async () => deleteLink(kernel, index));
  }
  for (const link of diff.create) await create({ kernel, work }, config, link);
  const { change } = diffLinks(owner, links, await dumpLinks(kernel));
  for (const one of change) {
    await work.change(`link ${one.name}`, async () => changeLink(kernel, owner, one));
  }
  return dumpLinks(kernel);
}

async function create({ kernel, work }: HostContext, { owner }: HostConfig, link: LinkConfig): Promise<void> {
  await work.attempt(`link ${link.name}`, async () => {
    if (link.kind !== 'wireguard' || isMadeHere(link)) {
      try {
        await createLink(kernel, owner, link);
        return 1;
      } catch (error) {
        if (link.kind !== 'wireguard' || hasWireGuard(error)) throw error;
      }
    }
    work.add({ reason: 'NoWireGuard', message: noWireGuard(link) });
    return 0;
  });
}

export function ourLinks(config: HostConfig, actual: readonly KernelLink[]): OurLinks {
  const ours = new Map(actual.filter((link) => isOurs(config.owner, link)).map((link) => [link.name, link]));
  return new Map(
    config.links.flatMap((wanted) => {
      const there = ours.get(wanted.name);
      if (there === undefined) return [];
      const { index, kind } = there;
      return [[wanted.name, { wanted, index, ...(kind !== undefined && { kind }) }] as const];
    }),
  );
}

/** A link of ours has our alias; between its creation and the setting of the alias it has our group. */
export function isOurs(owner: Owner, link: KernelLink): boolean {
  if (link.alias !== undefined) return link.alias === ALIASES[owner];
  return link.group === PROTOCOLS[owner] && WITH_MARK.has(link.kind ?? '');
}

export interface KernelLink {
  index: number;
  name: string;
  isUp: boolean;
  mtu: number;
  group: number;
  /** `vxlan`, `wireguard`, `tun`, `veth`, ...; physical ones have none. */
  kind?: string;
  alias?: string;
  macAddress?: string;
  vxlan?: KernelVxlan;
}

interface KernelVxlan {
  vni: number;
  port: number;
  local?: string;
  isLearning: boolean;
}

/** A field that is absent stays as it is. */
interface LinkChange {
  index: number;
  name: string;
  /** Whether the link gets our alias. */
  adopt: boolean;
  mtu?: number;
  macAddress?: string;
  up: boolean;
}

interface LinkDiff {
  /** Ours that nobody wants, or that cannot be changed into what is wanted. They go before anything is made. */
  remove: KernelLink[];
  create: LinkConfig[];
  change: LinkChange[];
  /** Wanted names that links of others have. The message is one line, for people. */
  refused: { name: string; message: string }[];
}

const WITH_MARK = new Set(['vxlan', 'wireguard']);

/** What has to happen to the links, from what is wanted and what there is. Pure. */
export function diffLinks(
  owner: Owner,
  wanted: readonly LinkConfig[],
  actual: readonly KernelLink[],
): LinkDiff {
  const diff: LinkDiff = { remove: [], create: [], change: [], refused: [] };
  const byName = new Map(actual.map((link) => [link.name, link]));
  const names = new Set(wanted.map(({ name }) => name));
  diff.remove.push(...actual.filter((link) => isOurs(owner, link) && !names.has(link.name)));
  for (const link of wanted) {
    const there = byName.get(link.name);
    if (there === undefined) diff.create.push(link);
    else if (!isOurs(owner, there) && !isFromWireGuardGo(link, there))
      diff.refused.push(refusal(link, there));
    else if (isUnwantedProgram(link, there)) diff.refused.push(ofWireGuardGo(link));
    else if (!isSameLink(link, there)) {
      diff.remove.push(there);
      diff.create.push(link);
    } else diff.change.push(...changed(owner, link, there));
  }
  return diff;
}

/** What has to be changed of a link that is ours or becomes ours. Empty when there is nothing to change. */
function changed(owner: Owner, wanted: LinkConfig, there: KernelLink): LinkChange[] {
  const adopt = there.alias !== ALIASES[owner];
  const mac = wanted.kind === 'vxlan' ? wanted.macAddress.toLowerCase() : undefined;
  const hasOtherMac = mac !== undefined && mac !== there.macAddress;
  if (!adopt && there.isUp && there.mtu === wanted.mtu && !hasOtherMac) return [];
  const change: LinkChange = { index: there.index, name: there.name, adopt, up: !there.isUp };
  if (there.mtu !== wanted.mtu) change.mtu = wanted.mtu;
  if (hasOtherMac) change.macAddress = mac;
  return [change];
}

/** wireguard-go does not mark its link. So a link of its kind that has our name and nobody's mark is ours. */
function isFromWireGuardGo(wanted: LinkConfig, there: KernelLink): boolean {
  return wanted.kind === 'wireguard' && there.kind === 'tun' && there.alias === undefined;
}

/** Compares what the kernel does not let us change after the creation. */
function isSameLink(wanted: LinkConfig, there: KernelLink): boolean {
  if (wanted.kind === 'wireguard') return isWantedWireGuard(wanted, there.kind);
  const { vxlan } = there;
  return (
    vxlan !== undefined &&
    vxlan.vni === wanted.vni &&
    vxlan.port === wanted.port &&
    vxlan.local === canonicalAddress(wanted.local) &&
    !vxlan.isLearning
  );
}

/** It carries packets, and goes with its program. So it is left, and people are told to end the program. */
const isUnwantedProgram = (wanted: LinkConfig, { kind }: KernelLink): boolean =>
  wanted.kind === 'wireguard' && wanted.by === 'kernel' && wireguardOf(kind) === 'Userspace';

const ofWireGuardGo = ({ name }: LinkConfig): { name: string; message: string } => ({
  name,
  message: `link ${name}: it is that of wireguard-go, and --wireguard kernel wants the kernel's; end wireguard-go, or choose auto`,
});

function refusal(wanted: LinkConfig, there: KernelLink): { name: string; message: string } {
  const kind = there.kind === undefined ? '' : ` of kind ${there.kind}`;
  const alias = there.alias === undefined ? 'without an alias' : `with alias ${JSON.stringify(there.alias)}`;
  const message =
    `link ${wanted.name}: there is one${kind} ${alias} that is not ours; ` +
    'remove or rename it, or give us another name';
  return { name: wanted.name, message };
}

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

/** The MTU of one link, in bytes. */
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
 * Makes the link, which is still down. The alias cannot be given on creation, so the group marks the link until `changeLink`
 * has set the alias: what a crash leaves in between is known as ours.
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

async function changeLink(kernel: Rtnetlink, owner: Owner, change: LinkChange): Promise<void> {
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
