import { addressBytes, addressText, canonicalAddress, macBytes, macText } from './addresses.ts';
import type { VxlanLink, VxlanNeighbour } from './host-config.ts';
import {
  AF_BRIDGE,
  decodeAttributes,
  DELETE_NEIGHBOUR,
  encodeAttributes,
  GET_NEIGHBOUR,
  LINK_BYTES,
  linkHeader,
  NEIGHBOUR_BYTES,
  neighbourHeader,
  NEW_NEIGHBOUR,
  readU16,
  readU32,
} from './messages.ts';
import { CREATE, REPLACE, type Rtnetlink } from './rtnetlink.ts';
import { diffSets, type HostContext, type OurLinks, type SetDiff } from './work.ts';

/** A static neighbour of a VXLAN link, in one of the kernel's two tables. */
export interface KernelNeighbour {
  /** `address`: this address has that MAC address. `forwarding`: that MAC address is behind this node. */
  table: 'address' | 'forwarding';
  address: string;
  macAddress: string;
}

export async function setNeighbours({ kernel, work }: HostContext, links: OurLinks): Promise<void> {
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

export const describe = ({ table, address, macAddress }: KernelNeighbour, link: string): string =>
  table === 'address'
    ? `neighbour ${address} lladdr ${macAddress} dev ${link}`
    : `forwarding entry ${macAddress} dst ${address} dev ${link}`;

/** NDA_* of linux/neighbour.h. */
const NDA = { destination: 1, macAddress: 2 } as const;
const NUD_PERMANENT = 0x80;
const NUD_NOARP = 0x40;
const NTF_SELF = 2;

export function diffNeighbours(
  wanted: readonly VxlanNeighbour[],
  actual: readonly KernelNeighbour[],
): SetDiff<KernelNeighbour> {
  const entries = wanted.flatMap((neighbour): KernelNeighbour[] => {
    const macAddress = neighbour.macAddress.toLowerCase();
    return [
      { table: 'address', address: canonicalAddress(neighbour.address), macAddress },
      { table: 'forwarding', address: canonicalAddress(neighbour.via), macAddress },
    ];
  });
  const diff = diffSets(entries, actual, keyOf);
  // The kernel knows an entry of table `address` by its address alone: adding ours replaces the other one, so removing the
  // other one as well would remove ours.
  const replaced = new Set(diff.add.flatMap((entry) => (entry.table === 'address' ? [entry.address] : [])));
  const isReplaced = (entry: KernelNeighbour): boolean =>
    entry.table === 'address' && replaced.has(entry.address);
  return { add: diff.add, remove: diff.remove.filter((entry) => !isReplaced(entry)) };
}

const keyOf = ({ table, address, macAddress }: KernelNeighbour): string =>
  `${table} ${address} ${macAddress}`;

/** The static neighbours of both tables, by the index of their link. */
export async function dumpNeighbours(
  kernel: Rtnetlink,
  indexes: readonly number[],
): Promise<Map<number, KernelNeighbour[]>> {
  const found = new Map<number, KernelNeighbour[]>(indexes.map((index) => [index, []]));
  if (indexes.length === 0) return found;
  const any = neighbourHeader({ family: 0, index: 0, state: 0 });
  for (const message of await kernel.dump(GET_NEIGHBOUR, any)) collect(message, 'address', found);
  for (const index of indexes) {
    // A header of the size of a link's makes the kernel show the entries of that link only.
    const header = linkHeader({ family: AF_BRIDGE, index });
    for (const message of await kernel.dump(GET_NEIGHBOUR, header)) collect(message, 'forwarding', found);
  }
  return found;
}

function collect(
  message: Buffer,
  table: KernelNeighbour['table'],
  found: Map<number, KernelNeighbour[]>,
): void {
  if (message.length < Math.min(NEIGHBOUR_BYTES, LINK_BYTES)) return;
  const attributes = decodeAttributes(message.subarray(NEIGHBOUR_BYTES));
  const address = attributes.get(NDA.destination);
  const mac = attributes.get(NDA.macAddress);
  const isStatic = (readU16(message, 8) & NUD_PERMANENT) !== 0;
  if (!isStatic || mac?.length !== 6 || address === undefined) return;
  found.get(readU32(message, 4))?.push({ table, address: addressText(address), macAddress: macText(mac) });
}

export async function addNeighbour(
  kernel: Rtnetlink,
  index: number,
  neighbour: KernelNeighbour,
): Promise<void> {
  await kernel.write(NEW_NEIGHBOUR, CREATE | REPLACE, neighbourMessage(index, neighbour));
}

export async function deleteNeighbour(
  kernel: Rtnetlink,
  index: number,
  neighbour: KernelNeighbour,
): Promise<void> {
  await kernel.write(DELETE_NEIGHBOUR, 0, neighbourMessage(index, neighbour));
}

function neighbourMessage(index: number, { table, address, macAddress }: KernelNeighbour): Buffer {
  const destination = addressBytes(address);
  const header =
    table === 'forwarding'
      ? { family: AF_BRIDGE, index, state: NUD_PERMANENT | NUD_NOARP, flags: NTF_SELF }
      : { family: destination.length === 4 ? 2 : 10, index, state: NUD_PERMANENT };
  return Buffer.concat([
    neighbourHeader(header),
    encodeAttributes([
      [NDA.destination, destination],
      [NDA.macAddress, macBytes(macAddress)],
    ]),
  ]);
}
