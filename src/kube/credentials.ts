import { isIP } from 'node:net';
import {
  type PeerCertificate,
  type SecureContextOptions,
  checkServerIdentity,
  createSecureContext,
} from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { systemClock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';

/** Where one API server is and how to prove who we are. */
export interface Credentials {
  /** https only; a path before `/api` is kept. */
  server: URL;
  /** PEM; the system's roots where absent. */
  ca?: string;
  /** PEM. */
  clientCert?: { cert: string; key: string };
  /** `fresh` asks to look past any cache: the server has refused the last one. */
  token?: (signal?: AbortSignal, fresh?: boolean) => Promise<string | undefined>;
  /** The name in the certificate, where it is not the host of `server`. */
  tlsServerName?: string;
  insecureSkipTlsVerify?: boolean;
  /** Default namespace of the context. */
  namespace?: string;
}

/** What `tls.connect` needs to reach the server; made once, since a secure context is costly. */
export interface TlsTarget {
  host: string;
  port: number;
  servername?: string;
  secureContext: ReturnType<typeof createSecureContext>;
  rejectUnauthorized: boolean;
  /** Where the name in the certificate is an address other than the one that is dialled. */
  checkServerIdentity?: (host: string, certificate: PeerCertificate) => Error | undefined;
}

export function tlsTarget(credentials: Credentials): TlsTarget {
  const { server, ca, clientCert, tlsServerName, insecureSkipTlsVerify = false } = credentials;
  const options: SecureContextOptions = { minVersion: 'TLSv1.2' };
  if (ca !== undefined) options.ca = ca;
  if (clientCert !== undefined) Object.assign(options, clientCert);
  const host = server.hostname.replace(/^\[|\]$/g, '');
  const name = tlsServerName ?? host;
  return {
    host,
    port: Number(server.port === '' ? 443 : server.port),
    // Server name indication takes no addresses (RFC 6066, section 3).
    ...(isIP(name) === 0
      ? { servername: name }
      : { checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate) }),
    secureContext: createSecureContext(options),
    rejectUnauthorized: !insecureSkipTlsVerify,
  };
}

/** Whether connections made with the one are as good for the other: all but the token, which goes with each request. */
export function sameButToken(one: Credentials, other: Credentials): boolean {
  const { token: _one, server: here, ...mine } = one;
  const { token: _other, server: there, ...theirs } = other;
  return (
    here.href === there.href &&
    (one.token === undefined) === (other.token === undefined) &&
    deepEqual(mine, theirs)
  );
}

/** Projected tokens are rotated well before they expire; client-go looks as often. */
const TOKEN_REREAD_MS = 60_000;

/** A token that is read from a file and read again every minute, or when the server refuses it. */
export function rereadToken(
  read: () => Promise<string>,
  clock: Clock = systemClock,
): (signal?: AbortSignal, fresh?: boolean) => Promise<string | undefined> {
  let token: string | undefined;
  let readAt = -Infinity;
  return async (_signal, fresh = false) => {
    if (!fresh && clock.monotonic() - readAt < TOKEN_REREAD_MS) return token;
    try {
      token = (await read()).trim();
      readAt = clock.monotonic();
    } catch (error) {
      // The volume may be swapped under us; the last token is good for a while yet.
      if (token === undefined) throw error;
    }
    return token;
  };
}
