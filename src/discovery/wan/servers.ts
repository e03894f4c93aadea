import { isIP, isIPv6 } from 'node:net';
import { TributaryError } from '../../lib/errors.ts';

/** A DNS server. */
export interface ServerAddress {
  address: string;
  port: number;
}

const DNS_PORT = 53;
/** More are not asked: a look must end. */
const MAX_SERVERS = 8;

/** `address`, `address:port` or `[v6]:port`, as in SearchDomain and in `dns.getServers()`. Throws Invalid. */
export function parseServers(texts: readonly string[]): ServerAddress[] {
  return texts.slice(0, MAX_SERVERS).map(parseServer);
}

function parseServer(text: string): ServerAddress {
  if (isIP(text) !== 0) return { address: text, port: DNS_PORT };
  const { host = '', port = String(DNS_PORT) } =
    /^(?:\[(?<host>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups ?? {};
  const number = Number(port);
  if (isIP(host) === 0 || number < 1 || number > 65_535) {
    throw new TributaryError('Invalid', `DNS server "${text}" is not of the form address or address:port`);
  }
  return { address: host, port: number };
}

export const serverText = ({ address, port }: ServerAddress): string =>
  `${isIPv6(address) ? `[${address}]` : address}:${port}`;
