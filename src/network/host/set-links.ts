/** The links of a HostConfig, with their addresses and neighbours. */
import { addAddress, deleteAddress, dumpAddresses, type KernelAddress } from './addresses.ts';
import { canonicalPrefix } from './address.ts';
import { diffLinks, isOurs, type KernelLink } from './diff-links.ts';
import { diffSets } from './diff-sets.ts';
import type { HostConfig, LinkConfig, VxlanLink } from './host-config.ts';
import { changeLink, createLink, deleteLink, dumpLinks } from './links.ts';
import {
  addNeighbour,
  deleteNeighbour,
  diffNeighbours,
  dumpNeighbours,
  type KernelNeighbour,
} from './neighbours.ts';
import { isKernelError, type Rtnetlink } from './rtnetlink.ts';
import type { Work } from './work.ts';

export interface Host {
  kernel: Rtnetlink;
  work: Work;
}

/** Links that are there as wanted: ours, by name. */
export type OurLinks = ReadonlyMap<string, { wanted: LinkConfig; index: number }>;

/** Makes the links; resolves to all that there are then. */
export async function setLinks({ kernel, work }: Host, config: HostConfig): Promise<KernelLink[]> {
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

async function create({ kernel, work }: Host, { owner }: HostConfig, link: LinkConfig): Promise<void> {
  await work.attempt(`link ${link.name}`, async () => {
    try {
      await createLink(kernel, owner, link);
      return 1;
    } catch (error) {
      if (link.kind !== 'wireguard' || !isKernelError(error, 'EOPNOTSUPP')) throw error;
    }
    const message =
      `link ${link.name}: this kernel has no WireGuard, and wireguard-go has not made the link yet; ` +
      'look at its container';
    work.add({ reason: 'NoWireGuard', message });
    return 0;
  });
}

export function ourLinks(config: HostConfig, actual: readonly KernelLink[]): OurLinks {
  const ours = new Map(actual.filter((link) => isOurs(config.owner, link)).map((link) => [link.name, link]));
  return new Map(
    config.links.flatMap((wanted) => {
      const there = ours.get(wanted.name);
      return there ? [[wanted.name, { wanted, index: there.index }] as const] : [];
    }),
  );
}

export async function setAddresses({ kernel, work }: Host, links: OurLinks): Promise<void> {
  const all = await dumpAddresses(kernel);
  for (const [name, { wanted, index }] of links) {
    const addresses = wanted.addresses.map((address): KernelAddress => {
      return { index, prefix: canonicalPrefix(address) };
    });
    const actual = all.filter((address) => address.index === index);
    const diff = diffSets(addresses, actual, ({ prefix }) => prefix);
    // First, since the kernel removes further addresses of a prefix together with its first one.
    for (const address of diff.remove) {
      const what = `address ${address.prefix} dev ${name}`;
      await work.remove(what, async () => deleteAddress(kernel, address));
    }
    for (const address of diff.add) {
      const what = `address ${address.prefix} dev ${name}`;
      await work.change(what, async () => addAddress(kernel, address));
    }
  }
}

export async function setNeighbours({ kernel, work }: Host, links: OurLinks): Promise<void> {
  const vxlans = [...links].flatMap(([, { wanted, index }]): { wanted: VxlanLink; index: number }[] =>
    wanted.kind === 'vxlan' ? [{ wanted, index }] : [],
  );
  const indexes = vxlans.map(({ index }) => index);
  const actual = await dumpNeighbours(kernel, indexes);
  for (const { wanted, index } of vxlans) {
    const diff = diffNeighbours(wanted.neighbours, actual.get(index) ?? []);
    for (const entry of diff.add) {
      await work.change(describe(entry, wanted.name), async () => addNeighbour(kernel, index, entry));
    }
    for (const entry of diff.remove) {
      await work.remove(describe(entry, wanted.name), async () => deleteNeighbour(kernel, index, entry));
    }
  }
}

const describe = ({ table, address, macAddress }: KernelNeighbour, link: string): string =>
  table === 'address'
    ? `neighbour ${address} lladdr ${macAddress} dev ${link}`
    : `forwarding entry ${macAddress} dst ${address} dev ${link}`;
