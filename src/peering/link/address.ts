import { TributaryError } from '../../lib/errors.ts';

/** `host:port` or `[IPv6]:port`, taken apart. Throws Invalid. */
export function parseEndpoint(endpoint: string): { host: string; port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:/@[\]]+)):(\d{1,5})$/.exec(endpoint);
  const [, v6, name, digits = ''] = match ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  if (endpoint.length > 300 || host === undefined || port < 1 || port > 65_535) {
    throw new TributaryError(
      'Invalid',
      `not HOST:PORT or [IPv6]:PORT: ${JSON.stringify(endpoint.slice(0, 80))}`,
    );
  }
  return { host, port };
}
