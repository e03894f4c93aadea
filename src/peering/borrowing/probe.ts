import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

import { Authorities } from '../../kube/authorities.ts';
import { tlsTarget } from '../../kube/credentials.ts';
import { dial } from '../../kube/dial.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { hostAndPort, joinEndpoint } from '../../lib/endpoint.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { firstOf } from '../../lib/first-of.ts';
import { proxyFor, type ProxySettings } from '../../lib/proxy.ts';
import type { ApiAccess } from '../protocol/documents.ts';
import { ourAddresses, type OurPlaces, plain, refuseOurs, type Resolve } from './our-places.ts';

export interface ProbeOptions {
  ours: OurPlaces;
  allowLoopback: boolean;
  clock: Clock;
  /** Asked for each address, as the agent will use the address alone. */
  proxies?: ProxySettings | undefined;
  resolve?: Resolve;
}

const PROBE_TIMEOUT_MS = 2000;
const MAX_ADDRESSES = 4;
const MAX_CA_LENGTH = 256 * 1024;
const ALPN = ['h2', 'http/1.1'];

/**
 * Checks what a provider says of its API server, as far as that is possible without connecting. Throws Invalid, and Forbidden
 * where it says that a server of this cluster is its own. (The agent will connect to it from inside this cluster: `probe`
 * refuses addresses that mean something else here than there.)
 */
export function checkedAccess(api: ApiAccess, ourCa?: string): ApiAccess {
  const { server, ca, serverName } = api;
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.search !== '') {
    throw new TributaryError(
      'Invalid',
      'the provider names an API server whose address is not a plain https URL',
    );
  }
  if (ca !== undefined) checkAuthority(ca, ourCa);
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

function checkAuthority(pem: string, ourCa: string | undefined): void {
  const certificates = authoritiesIn(pem);
  const ours = ourCa === undefined ? undefined : new Authorities(ourCa);
  if (ours === undefined || !certificates.some((certificate) => ours.knows(certificate))) return;
  throw new TributaryError(
    'Forbidden',
    'the provider says that the certificate authority of this very cluster is that of its own API server: two clusters that use each other need authorities of their own',
  );
}

function authoritiesIn(pem: string): X509Certificate[] {
  const blocks =
    pem.length > MAX_CA_LENGTH ? [] : (pem.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/gu) ?? []);
  try {
    if (blocks.length === 0) throw new Error('no PEM block');
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw new TributaryError(
      'Invalid',
      `the provider sent a certificate authority for its API server that is not a certificate: ${errorMessage(error)}`,
    );
  }
}

/**
 * Connects once, with TLS verified against what the provider says, and hangs up. Returns the same API server by the address
 * that was checked and has answered, under its name: a name can lead elsewhere a moment later. Throws Forbidden where an
 * address may not be used, Unreachable where nobody answers correctly.
 */
export async function probe(api: ApiAccess, options: ProbeOptions, signal: AbortSignal): Promise<ApiAccess> {
  const { clock, ours, proxies, resolve = resolveAll } = options;
  const server = new URL(api.server);
  const named = present({ ca: api.ca, tlsServerName: api.serverName, refusedCa: ours.ca });
  const target = tlsTarget({ server, ...named });
  using deadline = startDeadline(clock, PROBE_TIMEOUT_MS, `probing ${server.host}`, signal);
  const found =
    isIP(target.host) === 0 ? await untilAborted(resolve(target.host), deadline.signal) : [target.host];
  const own = await untilAborted(ourAddresses(ours, { ...options, resolve }), deadline.signal);
  const addresses = found.slice(0, MAX_ADDRESSES);
  for (const address of addresses) refuseOurs({ address, port: target.port }, own);
  const none = new TributaryError('Unreachable', 'its name has no address');
  const address = await firstOf(addresses, none, async (host) => {
    const at = { clock, protocols: ALPN, timeoutMs: PROBE_TIMEOUT_MS, signal: deadline.signal };
    const proxy = proxyFor(proxies, { host, port: target.port });
    const socket = await dial({ ...at, target: { ...target, host, ...(proxy && { proxy }) } });
    socket.destroy();
    return host;
  });
  return pinned(api, address);
}

/** The same server at that address. Its certificate is still for the name by which the provider calls it. */
export function pinned(api: ApiAccess, address: string): ApiAccess {
  const url = new URL(api.server);
  const { host, port } = hostAndPort(url);
  const serverName = api.serverName ?? (isIP(host) === 0 ? host : undefined);
  const path = url.pathname.replace(/\/$/u, '');
  return {
    ...api,
    server: `${new URL(`https://${joinEndpoint(plain(address), port)}`).origin}${path}`,
    ...(serverName !== undefined && { serverName }),
  };
}

export const resolveAll: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);
