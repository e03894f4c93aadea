/**
 * Sets a WireGuard link: of wireguard-go by its socket, of the kernel through `wg`. Only differences are written. Keys never stand in
 * argv, in the environment or in a file with a name.
 */
import { systemClock } from '../../../lib/clock.ts';
import { ignoring, TributaryError } from '../../../lib/errors.ts';
import type { WireGuardConfig, WireGuardPeerState } from '../host-config.ts';
import { runTool, type ToolResult } from '../tool.ts';
import { type Change, changesTo, checkConfig, checkLink, type GivenEndpoints } from './changes.ts';
import { programState, setProgram } from './program.ts';
import { readDump, type WireGuardState } from './dump.ts';

export { generateKey, publicKeyOf, type KeyPair } from './keys.ts';

/** A program may have so many files open, and a command line so many arguments; far below both. */
const PEERS_AT_ONCE = 64;
/** File descriptor of the first secret, as runTool hands secrets over. */
const FIRST_SECRET = 3;

/** Endpoints that peers were given last, by link. Only a hint: without it, a recent handshake shows that an endpoint was learnt. */
const givenEndpoints = new Map<string, GivenEndpoints>();

/**
 * Resolves to the number of changed settings. 0: nothing was written.
 *
 * @throws Invalid when the config cannot be for wg, NotFound where the link is not there or is no WireGuard link,
 *   Forbidden without CAP_NET_ADMIN, Unavailable otherwise.
 */
export async function setWireGuard(config: WireGuardConfig): Promise<number> {
  checkConfig(config);
  const { state, write } = await linkOf(config.link);
  const given: ReadonlyMap<string, string> = givenEndpoints.get(config.link) ?? new Map<string, string>();
  const changes = changesTo(config, state, given, systemClock.now() / 1000);
  for (let start = 0; start < changes.length; start += PEERS_AT_ONCE) {
    // oxlint-disable-next-line no-await-in-loop -- what is removed goes before what is added.
    await write(changes.slice(start, start + PEERS_AT_ONCE));
  }
  const now = config.peers.flatMap(({ publicKey, endpoint }): [string, string][] =>
    endpoint === undefined ? [] : [[publicKey, endpoint]],
  );
  givenEndpoints.set(config.link, new Map(now));
  return changes.reduce((sum, { count }) => sum + count, 0);
}

interface LinkNow {
  state: WireGuardState;
  write: (changes: readonly Change[]) => Promise<void>;
}

/** As `wg` does it: a link that a program serves is that program's, any other one the kernel's. */
async function linkOf(link: string): Promise<LinkNow> {
  const state = await programState(link);
  if (state === undefined)
    return { state: await stateOf(link), write: async (changes) => writeToKernel(link, changes) };
  return { state, write: async (changes) => writeToProgram(link, changes) };
}

async function writeToProgram(link: string, changes: readonly Change[]): Promise<void> {
  if (await setProgram(link, changes)) return;
  throw new TributaryError(
    'NotFound',
    `WireGuard: there is no link ${link} any more: wireguard-go has ended`,
  );
}

async function writeToKernel(link: string, changes: readonly Change[]): Promise<void> {
  const args: string[] = [];
  const secrets: string[] = [];
  for (const change of changes) {
    for (const arg of change.args) {
      args.push(typeof arg === 'string' ? arg : `/dev/fd/${FIRST_SECRET + secrets.length + arg}`);
    }
    secrets.push(...change.secrets);
  }
  const result = await runTool('wg', ['set', link, ...args], { secrets });
  if (result.code !== 0) throw refusal(link, 'cannot be set', result);
}

async function stateOf(link: string): Promise<WireGuardState> {
  const result = await runTool('wg', ['show', checkLink(link), 'dump']);
  if (result.code !== 0) throw refusal(link, 'cannot be read', result);
  return readDump(result.output);
}

/** What wg says when there is no such link, when it is of another kind, and when wireguard-go has gone. */
const ABSENT =
  /No such device|Protocol not supported|Operation not supported|Connection refused|No such file/;

function refusal(link: string, what: string, { complaint }: ToolResult): TributaryError {
  if (complaint.includes('Operation not permitted') || complaint.includes('Permission denied')) {
    const text = `WireGuard: link ${link} ${what}: the process needs CAP_NET_ADMIN (wg says: ${complaint})`;
    return new TributaryError('Forbidden', text);
  }
  if (ABSENT.test(complaint)) {
    return new TributaryError('NotFound', `WireGuard: there is no link ${link} (wg says: ${complaint})`);
  }
  return new TributaryError('Unavailable', `WireGuard: link ${link} ${what}: wg says: ${complaint}`);
}

/** Undefined where there is no such link. */
async function findState(link: string): Promise<WireGuardState | undefined> {
  try {
    return (await linkOf(link)).state;
  } catch (error) {
    return ignoring('NotFound')(error);
  }
}

/** What WireGuard knows of its peers. Empty where the link is not there. */
export async function wireguardPeers(link: string): Promise<WireGuardPeerState[]> {
  const state = await findState(link);
  return [...(state?.peers ?? [])].map(([publicKey, peer]) => ({
    publicKey,
    ...(peer.endpoint !== undefined && { endpoint: peer.endpoint }),
    ...(peer.handshake !== 0 && { handshakeMs: peer.handshake * 1000 }),
    receivedBytes: peer.receivedBytes,
    sentBytes: peer.sentBytes,
  }));
}

/** Whether the link is there and is one of WireGuard, whose implementation answers. */
export async function isWireGuardReady(link: string): Promise<boolean> {
  return (await findState(link)) !== undefined;
}
