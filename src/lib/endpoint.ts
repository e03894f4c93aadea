import { TributaryError } from './errors.ts';

export interface Endpoint {
  /** A name or an address, IPv6 without brackets. */
  host: string;
  port: number;
}

const FORM = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:/@[\]]+)):(\d{1,5})$/;

/** `host:port` or `[IPv6]:port`, taken apart; undefined for anything else. */
export function splitEndpoint(endpoint: string): Endpoint | undefined {
  const [, v6, name, digits = ''] = FORM.exec(endpoint) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  if (endpoint.length > 300 || host === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

/** `host:port`, or `[IPv6]:port`. */
export const joinEndpoint = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

/** As `splitEndpoint`; throws Invalid for anything else. */
export function parseEndpoint(endpoint: string): Endpoint {
  const parsed = splitEndpoint(endpoint);
  if (parsed !== undefined) return parsed;
  throw new TributaryError(
    'Invalid',
    `not HOST:PORT or [IPv6]:PORT: ${JSON.stringify(endpoint.slice(0, 80))}`,
  );
}

/** Of an https URL; an IPv6 address without its brackets. */
export const hostAndPort = (server: URL): { host: string; port: number } => ({
  host: server.hostname.replace(/^\[|\]$/g, ''),
  port: server.port === '' ? 443 : Number(server.port),
});
