/**
 * The generation of the ruleset of this network namespace: a number that the kernel counts up by one with each
 * transaction, of whichever program (NFT_MSG_GETGEN of linux/netfilter/nf_tables.h). While it stays, nothing has changed.
 */
import netlink from 'netlink';

const NETLINK_NETFILTER = 12;
/** Subsystem nftables (10), message NFT_MSG_GETGEN (16); the answer is NFT_MSG_NEWGEN (15). */
const GET_GENERATION = 0x0a10;
const NEW_GENERATION = 0x0a0f;
/** struct nfgenmsg: no family, version 0, no resource. */
const HEADER = Buffer.alloc(4);
/** NFTA_GEN_ID: the header of the attribute is in host order, its value in network order. */
const ID = 1;
const ID_LENGTH = 8;
const ANSWER_MS = 5000;
/** It counts in 32 bits and leaves 0 out. */
const LAST = 0xffff_ffff;

/** Undefined where the kernel does not tell. */
export async function generation(): Promise<number | undefined> {
  try {
    const socket = netlink.createNetlink(NETLINK_NETFILTER);
    try {
      const [messages] = await socket.request(GET_GENERATION, HEADER, { timeout: ANSWER_MS });
      const answer = messages.find(({ type }) => type === NEW_GENERATION);
      return answer === undefined ? undefined : idIn(Buffer.from(answer.data));
    } finally {
      socket.close();
    }
  } catch {
    return undefined;
  }
}

function idIn(data: Buffer): number | undefined {
  const attribute = data.subarray(HEADER.length);
  const isLittle = attribute.length >= ID_LENGTH && attribute.readUInt16LE(0) === ID_LENGTH;
  if (!isLittle || attribute.readUInt16LE(2) !== ID) return undefined;
  return attribute.readUInt32BE(4);
}

/** What the generation is after exactly one transaction. */
export const following = (id: number): number => (id === LAST ? 1 : id + 1);
