/**
 * Which HTTP proxy leads to a place, as the environment of a process says. HTTPS_PROXY and NO_PROXY mean what they mean to kubectl
 * and other programs in Go (golang.org/x/net/http/httpproxy), which curl agrees with.
 */
import { joinEndpoint, splitEndpoint, type Endpoint } from './endpoint.ts';
import { TributaryError } from './errors.ts';
import { isLoopback } from './never-dialled.ts';
import { type Address, contains, parseAddress, prefixOf, WIDTHS } from './prefix.ts';

/** A proxy that opens connections by CONNECT (RFC 9110, section 9.3.6). */
export interface Proxy extends Endpoint {
  /** Value of the header Proxy-Authorization. */
  readonly authorization?: string;
  /** With the password: for kubeconfigs, never for people. */
  readonly url: string;
}

export interface ProxySettings {
  readonly proxy: Proxy;
  /** As in NO_PROXY. */
  readonly except: string;
}

/** For people. */
export const nameOfProxy = ({ host, port }: Proxy): string => joinEndpoint(host, port);

/** Undefined where the environment names no proxy. Throws Invalid, without the text, which may hold a password. */
export function proxySettings(env: Readonly<Record<string, string | undefined>>): ProxySettings | undefined {
  const [variable = '', text = ''] = given(env, 'HTTPS_PROXY');
  if (text === '') return undefined;
  return { proxy: parseProxy(text, `$${variable}`), except: given(env, 'NO_PROXY')[1] ?? '' };
}

const given = (
  env: Readonly<Record<string, string | undefined>>,
  name: string,
): [variable?: string, text?: string] =>
  [name, name.toLowerCase()]
    .map((variable): [string, string] => [variable, env[variable]?.trim() ?? ''])
    .find(([, text]) => text !== '') ?? [];

/** `http://[USER:PASSWORD@]HOST[:PORT]`, where the scheme may be missing. `where` begins the error. */
export function parseProxy(text: string, where: string): Proxy {
  const full = /^[a-z][-a-z0-9+.]*:\/\//iu.test(text) ? text : `http://${text}`;
  const url = URL.parse(full);
  const form = 'http://[USER:PASSWORD@]HOST[:PORT]';
  if (url !== null && url.protocol !== 'http:') {
    const scheme = url.protocol.replace(/:$/u, '');
    throw new TributaryError(
      'Invalid',
      `${where}: a proxy of the scheme ${scheme} is not supported; name one as ${form}`,
    );
  }
  if (url === null || url.hostname === '')
    throw new TributaryError('Invalid', `${where}: the proxy is not of the form ${form}`);
  const credentials = credentialsOf(url, where);
  return {
    host: url.hostname.replace(/^\[|\]$/gu, ''),
    port: url.port === '' ? 80 : Number(url.port),
    url: url.href,
    ...(credentials !== undefined && {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    }),
  };
}

function credentialsOf({ username, password }: URL, where: string): string | undefined {
  if (username === '' && password === '') return undefined;
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    const why = 'the user or the password of the proxy has a % that begins no escape: write it as %25';
    throw new TributaryError('Invalid', `${where}: ${why}`);
  }
}

/** Undefined: dial it directly. */
export function proxyFor(settings: ProxySettings | undefined, at: Endpoint): Proxy | undefined {
  return settings === undefined || isExcepted(at, settings.except) ? undefined : settings.proxy;
}

function isExcepted({ host: text, port }: Endpoint, except: string): boolean {
  const host = text.toLowerCase();
  // Loopback, and an address with a scope, mean this host and its links: at a proxy they would mean those of the proxy.
  if (host === 'localhost' || isLoopback(host) || host.includes('%')) return true;
  return except
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && covers(entry, { host, port }));
}

function covers(entry: string, { host, port }: Endpoint): boolean {
  if (entry === '*') return true;
  const address = parseAddress(host);
  if (entry.includes('/')) return address !== undefined && isWithin(entry, address);
  const at = splitEndpoint(entry) ?? { host: entry.replace(/^\[|\]$/gu, ''), port };
  if (at.port !== port) return false;
  const named = parseAddress(at.host);
  if (named !== undefined) {
    return address?.family === named.family && address.value === named.value;
  }
  const domain = at.host.replace(/^\*(?=\.)/u, '');
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}

/** Bits after the length may be set here, as people write them in NO_PROXY. */
function isWithin(entry: string, address: Address): boolean {
  const [, base = '', digits = ''] = /^(.*)\/(\d{1,3})$/u.exec(entry) ?? [];
  const network = parseAddress(base);
  const length = Number(digits);
  if (network === undefined || length > WIDTHS[network.family]) return false;
  return contains(prefixOf(network, length), address);
}
