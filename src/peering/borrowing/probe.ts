import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, SocketAddress } from 'node:net';
import { tlsTarget } from '../../kube/credentials.ts';
import { dial } from '../../kube/dial.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import type { ApiAccess } from '../protocol/documents.ts';

/** All addresses of a host name. */
type Resolve = (host: string) => Promise<string[]>;

export interface ProbeOptions {
  /** Our own API server, as `host:port`, or `host` where the port is 443: no peer may send us there. */
  forbidden: readonly string[];
  allowLoopback: boolean;
  clock: Clock;
  resolve?: Resolve;
}

const PROBE_TIMEOUT_MS = 2000;
const MAX_ADDRESSES = 4;
const MAX_CA_LENGTH = 256 * 1024;
const DEFAULT_PORT = 443;
const ALPN = ['h2', 'http/1.1'];

/**
 * Checks what a provider says of its API server, as far as that is possible without connecting. Throws Invalid. (The
 * agent will connect to it from inside this cluster: `probe` refuses addresses that mean something else here than there.)
 */
export function checkedAccess(api: ApiAccess): ApiAccess {
  const { server, ca, serverName } = api;
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.search !== '') {
    throw new TributaryError(
      'Invalid',
      'the provider names an API server whose address is not a plain https URL',
    );
  }
  if (ca !== undefined) checkAuthority(ca);
  if (serverName !== undefined && !/^[A-Za-z0-9]([-A-Za-z0-9.:]{0,251}[A-Za-z0-9])?$/u.test(serverName)) {
    throw new TributaryError(
      'Invalid',
      'the provider gives its API server a name that no certificate can have',
    );
  }
  return {
    server: url.href.replace(/\/$/u, ''),
    ...(ca !== undefined && { ca }),
    ...(serverName && { serverName }),
  };
}

function checkAuthority(pem: string): void {
  const blocks =
    pem.length > MAX_CA_LENGTH ? [] : (pem.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/gu) ?? []);
  try {
    if (blocks.length === 0) throw new Error('no PEM block');
    for (const block of blocks) void new X509Certificate(block);
  } catch (error) {
    throw new TributaryError(
      'Invalid',
      `the provider sent a certificate authority for its API server that is not a certificate: ${errorMessage(error)}`,
    );
  }
}

/**
 * Connects once, with TLS verified against what the provider says, and hangs up. Throws Forbidden where the address
 * may not be used, Unreachable where nobody answers correctly.
 */
export async function probe(api: ApiAccess, options: ProbeOptions, signal: AbortSignal): Promise<void> {
  const { clock, resolve = resolveAll } = options;
  const server = new URL(api.server);
  const target = tlsTarget({ server, ...present({ ca: api.ca, tlsServerName: api.serverName }) });
  using deadline = startDeadline(clock, PROBE_TIMEOUT_MS, `probing ${server.host}`, signal);
  const found =
    isIP(target.host) === 0 ? await untilAborted(resolve(target.host), deadline.signal) : [target.host];
  const own = await untilAborted(forbiddenAddresses(options.forbidden, resolve), deadline.signal);
  const addresses = found.slice(0, MAX_ADDRESSES);
  for (const address of addresses) refuseAddress(address, target.port, { ...options, own });
  await firstToAnswer(addresses, async (host) => {
    const at = { clock, protocols: ALPN, timeoutMs: PROBE_TIMEOUT_MS, signal: deadline.signal };
    const socket = await dial({ ...at, target: { ...target, host } });
    socket.destroy();
  });
}

async function firstToAnswer(
  addresses: readonly string[],
  attempt: (address: string) => Promise<void>,
): Promise<void> {
  let last: unknown = new TributaryError('Unreachable', 'its name has no address');
  for (const address of addresses) {
    try {
      return await attempt(address);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

const NEVER = blockList([
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
]);
const LOOPBACK = blockList([
  ['127.0.0.0', 8, 'ipv4'],
  ['::1', 128, 'ipv6'],
]);

function blockList(prefixes: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[]): BlockList {
  const list = new BlockList();
  for (const [address, length, family] of prefixes) list.addSubnet(address, length, family);
  return list;
}

interface Bounds {
  allowLoopback: boolean;
  /** `address:port`. */
  own: ReadonlySet<string>;
}

function refuseAddress(address: string, port: number, { allowLoopback, own }: Bounds): void {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  const isHere = NEVER.check(address, family) || (!allowLoopback && LOOPBACK.check(address, family));
  if (isHere || own.has(`${plain(address)}:${port}`)) {
    throw new TributaryError(
      'Forbidden',
      `the provider's API server would be ${address}:${port}, which is not an address of another cluster`,
    );
  }
}

async function forbiddenAddresses(endpoints: readonly string[], resolve: Resolve): Promise<Set<string>> {
  const all = await Promise.all(
    endpoints.map(async (endpoint) => {
      const { hostname, port } = new URL(`https://${endpoint}`);
      const host = bare(hostname);
      const addresses = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
      return addresses.map((address) => `${plain(address)}:${port === '' ? DEFAULT_PORT : port}`);
    }),
  );
  return new Set(all.flat());
}

/** In its one spelling; an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5) as the IPv4 address. */
function plain(address: string): string {
  if (isIP(address) !== 6) return address;
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=[0-9.]+$)/iu, '');
}

const bare = (hostname: string): string => hostname.replaceAll(/^\[|\]$/gu, '');

const resolveAll: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);
