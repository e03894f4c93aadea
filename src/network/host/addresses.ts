/** Addresses of links. */
import { familyOf, KERNEL_FAMILY, parsePrefix, prefixText } from './address.ts';
import { decodeAttributes, encodeAttributes, readU32, u32 } from './attributes.ts';
import { ADDRESS_BYTES, addressHeader, DELETE_ADDRESS, GET_ADDRESS, NEW_ADDRESS } from './messages.ts';
import { CREATE, EXCLUSIVE, type Rtnetlink } from './rtnetlink.ts';

export interface KernelAddress {
  /** Of the link. */
  index: number;
  /** `address/length`, canonical. */
  prefix: string;
}

/** IFA_* of linux/if_addr.h. */
const IFA = { address: 1, local: 2, flags: 8 } as const;
/** An IPv6 address is good at once: nobody else can have it. */
const IFA_F_NODAD = 2;

/** All but the link-local ones of IPv6, which the kernel makes. */
export async function dumpAddresses(kernel: Rtnetlink): Promise<KernelAddress[]> {
  const messages = await kernel.dump(GET_ADDRESS, addressHeader(0, 0, 0));
  return messages.flatMap((message) => {
    const attributes = decodeAttributes(message.subarray(ADDRESS_BYTES));
    const bytes = attributes.get(IFA.local) ?? attributes.get(IFA.address);
    if (familyOf(message[0] ?? 0) === undefined || bytes === undefined || isLinkLocal(bytes)) return [];
    return [{ index: readU32(message, 4), prefix: prefixText(bytes, message[1] ?? 0) }];
  });
}

const isLinkLocal = (bytes: Buffer): boolean =>
  bytes.length === 16 && bytes[0] === 0xfe && ((bytes[1] ?? 0) & 0xc0) === 0x80;

export async function addAddress(kernel: Rtnetlink, address: KernelAddress): Promise<void> {
  await kernel.write(NEW_ADDRESS, CREATE | EXCLUSIVE, addressMessage(address));
}

export async function deleteAddress(kernel: Rtnetlink, address: KernelAddress): Promise<void> {
  await kernel.write(DELETE_ADDRESS, 0, addressMessage(address));
}

function addressMessage({ index, prefix }: KernelAddress): Buffer {
  const { family, bytes, length } = parsePrefix(prefix);
  return Buffer.concat([
    addressHeader(KERNEL_FAMILY[family], length, index),
    encodeAttributes([
      [IFA.local, bytes],
      [IFA.address, bytes],
      ...(family === 6 ? [[IFA.flags, u32(IFA_F_NODAD)] as const] : []),
    ]),
  ]);
}
