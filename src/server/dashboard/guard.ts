/** What a browser is told about every answer, and which requests are of our own page. Pure. */
import type { IncomingHttpHeaders } from 'node:http';

export const COOKIE = 'tributary-dashboard';
/** A form or an image of another site cannot set it. */
export const PAGE_HEADER = 'x-tributary-page';

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
};

/**
 * Only loopback names: under any other name the request comes from a page that has its own name resolved to this machine.
 * A port-forward is always on one of these.
 */
const HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/u;

/** Why a request is turned away before anything of it is read; undefined: it is not. */
export function foreignTo(method: string, headers: IncomingHttpHeaders): string | undefined {
  const { host = '', origin } = headers;
  if (!HOST.test(host)) return 'open this page by a port-forward, at localhost or 127.0.0.1';
  const site = headers['sec-fetch-site'];
  if (origin !== undefined && origin !== `http://${host}`) return 'this request is of another page';
  if (method === 'GET' || method === 'HEAD') {
    return site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate'
      ? 'this request is of another page'
      : undefined;
  }
  if (headers[PAGE_HEADER] !== '1' || (site !== undefined && site !== 'same-origin' && site !== 'none')) {
    return 'this request is of another page';
  }
  return undefined;
}

/** The cookie of a session; undefined where there is none. */
export function sessionIn({ cookie = '' }: IncomingHttpHeaders): string | undefined {
  const found = cookie
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${COOKIE}=`));
  return found?.slice(COOKIE.length + 1);
}

export const cookieFor = (id: string): string => `${COOKIE}=${id}; Path=/; HttpOnly; SameSite=Strict`;
export const NO_COOKIE: string = `${COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`;
