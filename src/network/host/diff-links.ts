/** What has to happen to the links of a host, from what is wanted and what there is. Pure. */
import { canonicalAddress } from './address.ts';
import { ALIASES, type LinkConfig, type Owner, PROTOCOLS } from './host-config.ts';

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

export interface KernelVxlan {
  vni: number;
  port: number;
  local?: string;
  isLearning: boolean;
}

/** What is not given stays. */
export interface LinkChange {
  index: number;
  name: string;
  /** Gets our mark. */
  adopt: boolean;
  mtu?: number;
  macAddress?: string;
  up: boolean;
}

export interface LinkDiff {
  /** Before anything is made: ours that are not wanted, or that cannot be changed into what is. */
  remove: KernelLink[];
  create: LinkConfig[];
  change: LinkChange[];
  /** Names of others' links: one line each for people. */
  refused: { name: string; message: string }[];
}

const WITH_MARK = new Set(['vxlan', 'wireguard']);

/** By its alias, or by the group that it has between its creation and its alias. */
export function isOurs(owner: Owner, link: KernelLink): boolean {
  if (link.alias !== undefined) return link.alias === ALIASES[owner];
  return link.group === PROTOCOLS[owner] && WITH_MARK.has(link.kind ?? '');
}

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
    else if (!isSameLink(link, there)) {
      diff.remove.push(there);
      diff.create.push(link);
    } else diff.change.push(...changed(owner, link, there));
  }
  return diff;
}

/** What has to be changed of a link that is ours or becomes it; empty when nothing. */
export function changed(owner: Owner, wanted: LinkConfig, there: KernelLink): LinkChange[] {
  const adopt = there.alias !== ALIASES[owner];
  const mac = wanted.kind === 'vxlan' ? wanted.macAddress.toLowerCase() : undefined;
  const hasOtherMac = mac !== undefined && mac !== there.macAddress;
  if (!adopt && there.isUp && there.mtu === wanted.mtu && !hasOtherMac) return [];
  const change: LinkChange = { index: there.index, name: there.name, adopt, up: !there.isUp };
  if (there.mtu !== wanted.mtu) change.mtu = wanted.mtu;
  if (hasOtherMac) change.macAddress = mac;
  return [change];
}

/** wireguard-go gives its link no mark, so one of that kind under our name that nobody has marked is ours. */
function isFromWireGuardGo(wanted: LinkConfig, there: KernelLink): boolean {
  return wanted.kind === 'wireguard' && there.kind === 'tun' && there.alias === undefined;
}

/** As far as the kernel lets nothing of it be changed. */
function isSameLink(wanted: LinkConfig, there: KernelLink): boolean {
  if (wanted.kind === 'wireguard') return there.kind === 'wireguard' || there.kind === 'tun';
  const { vxlan } = there;
  return (
    vxlan !== undefined &&
    vxlan.vni === wanted.vni &&
    vxlan.port === wanted.port &&
    vxlan.local === canonicalAddress(wanted.local) &&
    !vxlan.isLearning
  );
}

function refusal(wanted: LinkConfig, there: KernelLink): { name: string; message: string } {
  const kind = there.kind === undefined ? '' : ` of kind ${there.kind}`;
  const alias = there.alias === undefined ? 'without an alias' : `with alias ${JSON.stringify(there.alias)}`;
  const message =
    `link ${wanted.name}: there is one${kind} ${alias} that is not ours; ` +
    'remove or rename it, or give us another name';
  return { name: wanted.name, message };
}
