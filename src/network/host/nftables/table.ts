import { createNetlink } from '../netlink.ts';

import { TributaryError } from '../../../lib/errors.ts';
import type { TableConfig } from '../host-config.ts';
import { runTool, type ToolResult } from '../tool.ts';
import { changesTo, stateWith, type TableWish, wishFor } from './changes.ts';
import { type Counter, readCounters, readTable, type TableState } from './state.ts';
import { checkName, labelOf } from './syntax.ts';

/** The last state of each table. While the generation stays the same, the table need not be read, which takes longest of all. */
const known = new Map<string, { generation: number; state: TableState }>();

/** Somebody else may change our table after we have read it. Then our transaction fails. */
const ATTEMPTS = 2;

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
/** The generation has 32 bits and is never 0. */
const LAST = 0xffff_ffff;

/**
 * One nftables table of family `inet`, made as wanted in one transaction with only the differences.
 *
 * The table is read whenever there was any transaction after our last one, so that changes of others are found: of rules by the
 * comments that we give them (a rule with our comment and another text is not found), of elements one by one, of definitions by a
 * comment and by what can be seen of them.
 */

export type { Counter } from './state.ts';

/**
 * Resolves to the number of changed chains, sets and elements; 0: nothing was written. A config without chains and sets
 * means no table.
 *
 * @throws Invalid when a text cannot be for nft, or nft refuses it; Forbidden without CAP_NET_ADMIN.
 */
export async function setTable(name: string, config: TableConfig, signal?: AbortSignal): Promise<number> {
  const wish = wishFor(name, config);
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await tryTable(wish, signal);
    if (typeof outcome === 'number') return outcome;
    if (attempt === ATTEMPTS) throw refusal(`table ${name} cannot be set`, outcome);
  }
}

async function tryTable(wish: TableWish, signal: AbortSignal | undefined): Promise<number | ToolResult> {
  const { name } = wish;
  const before = await generation();
  const remembered = known.get(name);
  const isKnown = before !== undefined && remembered?.generation === before;
  known.delete(name);
  const listed = isKnown ? undefined : await list(name, signal);
  const state = isKnown ? remembered.state : listed === undefined ? undefined : understood(listed);
  if (wish.chains.size + wish.sets.size === 0) {
    if (!isKnown && listed === undefined) return 0;
    await removeTable(name);
    return 1;
  }
  const { count, script } = changesTo(wish, state);
  if (count > 0) {
    const result = await runTool('nft', ['-f', '-'], {
      input: script,
      ...(signal !== undefined && { signal }),
    });
    if (result.code !== 0) return result;
  }
  await remember(wish, before, count > 0 ? 1 : 0);
  return count;
}

/** Remembers the table only where there was no transaction but our own: then it is as wanted at this generation. */
async function remember(wish: TableWish, before: number | undefined, transactions: 0 | 1): Promise<void> {
  const after = await generation();
  if (before === undefined || after === undefined) return;
  if (after === (transactions === 0 ? before : following(before))) {
    known.set(wish.name, { generation: after, state: stateWith(wish) });
  }
}

/** A table that we do not understand is not as we left it: undefined. */
function understood(listed: string): TableState | undefined {
  try {
    return readTable(listed);
  } catch {
    return undefined;
  }
}

/** The table as JSON. Undefined where there is no such table. */
async function list(name: string, signal?: AbortSignal): Promise<string | undefined> {
  const args = ['-j', 'list', 'table', 'inet', checkName(name)];
  const result = await runTool('nft', args, signal === undefined ? {} : { signal });
  if (result.code === 0) return result.output;
  if (isAbsent(result)) return undefined;
  throw refusal(`table ${name} cannot be read`, result);
}

const isAbsent = ({ complaint }: ToolResult): boolean => complaint.includes('No such file or directory');

function refusal(what: string, { complaint }: ToolResult): TributaryError {
  const forbidden = complaint.includes('Operation not permitted');
  const advice = forbidden ? '; the process needs CAP_NET_ADMIN' : '';
  return new TributaryError(
    forbidden ? 'Forbidden' : 'Invalid',
    `nftables: ${what}: nft says: ${complaint}${advice}`,
  );
}

/** Does nothing where the table is not there. */
export async function removeTable(name: string): Promise<void> {
  known.delete(name);
  const result = await runTool('nft', ['delete', 'table', 'inet', checkName(name)]);
  if (result.code !== 0 && !isAbsent(result)) throw refusal(`table ${name} cannot be removed`, result);
}

/**
 * Counters of rules by the comment that the rule was written with (`counter drop comment "refused"`); rules with the same
 * comment are added up. They begin at 0 whenever their chain changes. Empty where there is no such table.
 */
export async function listCounters(name: string): Promise<Map<string, Counter>> {
  const counters = new Map<string, Counter>();
  for (const [comment, counter] of readCounters((await list(name)) ?? '{"nftables": []}')) {
    const label = labelOf(comment);
    if (label === undefined) continue;
    const { packets, bytes } = counters.get(label) ?? { packets: 0, bytes: 0 };
    counters.set(label, { packets: packets + counter.packets, bytes: bytes + counter.bytes });
  }
  return counters;
}

/**
 * The generation of the ruleset of this network namespace: a number that the kernel counts up by one with each transaction of any
 * program (NFT_MSG_GETGEN of linux/netfilter/nf_tables.h). While it stays the same, nothing has changed. Undefined where the kernel
 * does not tell it.
 */
async function generation(): Promise<number | undefined> {
  try {
    const socket = createNetlink(NETLINK_NETFILTER);
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

/** The generation after exactly one transaction. */
const following = (id: number): number => (id === LAST ? 1 : id + 1);
