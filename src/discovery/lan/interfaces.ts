import { BlockList, isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

export interface LanAddress {
  address: string;
  family: 4 | 6;
  /** Bits of the subnet's prefix. */
  prefix: number;
}

/** An interface that is up, with the addresses that it has now. */
export interface LanInterface {
  name: string;
  addresses: readonly LanAddress[];
}

/**
 * Pods', containers' and tunnels' own interfaces: what is behind them is this cluster or a cluster that is peered
 * already, never a LAN. A person who means one of them names it.
 */
const NOT_A_LAN =
  /^(veth|cni|cali|flannel|docker|podman|br-|virbr|lxc|cilium|weave|kube-|nodelocaldns|dummy|tunl|wg|tun|tap|tributary|vxlan|geneve|ipvlan|nerdctl|antrea|ovn|genev_sys|vnet)/;

/** The interfaces to speak mDNS on: the named ones, or all that look like a LAN. */
export function lanInterfaces(
  wanted: readonly string[] | undefined,
  all: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): LanInterface[] {
  return Object.entries(all).flatMap(([name, infos = []]) => {
    if (wanted === undefined ? NOT_A_LAN.test(name) : !wanted.includes(name)) return [];
    const addresses = infos.flatMap((info) => lanAddress(info, wanted !== undefined));
    return addresses.length === 0 ? [] : [{ name, addresses }];
  });
}

/** All interfaces of the host, loopback and pods' too. */
export function hostInterfaces(): LanInterface[] {
  const all = networkInterfaces();
  return lanInterfaces(Object.keys(all), all);
}

function lanAddress(info: NetworkInterfaceInfo, loopbackToo: boolean): LanAddress[] {
  if (info.internal && !loopbackToo) return [];
  const prefix = Number(info.cidr?.split('/')[1]);
  if (!Number.isInteger(prefix)) return [];
  return [{ address: info.address, family: info.family === 'IPv4' ? 4 : 6, prefix }];
}

export const hasFamily = ({ addresses }: LanInterface, family: 4 | 6): boolean =>
  addresses.some((own) => own.family === family);

/**
 * Tells whether a sender is on the link of an interface (RFC 6762, section 11): its address is in a subnet of the
 * interface, or link-local and, for IPv6, of this interface's scope.
 */
export function onLinkTest({ name, addresses }: LanInterface): (source: string) => boolean {
  const subnets = new BlockList();
  for (const { address, family, prefix } of addresses) subnets.addSubnet(address, prefix, typeOf(family));
  subnets.addSubnet('169.254.0.0', 16, 'ipv4');
  subnets.addSubnet('fe80::', 10, 'ipv6');
  return (source) => {
    const [address = '', scope] = source.split('%');
    const family = isIP(address);
    if (family !== 4 && family !== 6) return false;
    return (scope === undefined || scope === name) && subnets.check(address, typeOf(family));
  };
}

const typeOf = (family: 4 | 6): 'ipv4' | 'ipv6' => (family === 4 ? 'ipv4' : 'ipv6');

/** Equal only where nothing that matters to a link has changed. */
export const interfaceKey = ({ name, addresses }: LanInterface): string =>
  [name, ...addresses.map(({ address, prefix }) => `${address}/${prefix}`).toSorted()].join(' ');
