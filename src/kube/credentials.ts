import { isIP } from 'node:net';
import {
  type PeerCertificate,
  type SecureContextOptions,
  checkServerIdentity,
  createSecureContext,
} from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { systemClock } from '../lib/clock.ts';
import { hostAndPort } from '../lib/endpoint.ts';
import { deepEqual } from '../lib/equality.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Proxy } from '../lib/proxy.ts';
import { Authorities } from './authorities.ts';

/** The address of one API server, and how we authenticate there. */
export interface Credentials {
  /** Only https. A path before `/api` is kept. */
  server: URL;
  /** PEM; if absent, the system's root certificates count. */
  ca?: string;
  /** PEM. */
  clientCert?: { cert: string; key: string };
  /** `fresh`: take no token from a cache, since the server has refused the last one. */
  token?: (signal?: AbortSignal, fresh?: boolean) => Promise<string | undefined>;
  /** The name in the certificate, where it is not the host of `server`. */
  tlsServerName?: string;
  insecureSkipTlsVerify?: boolean;
  /**
   * PEM of authorities of another cluster: a server with a certificate of theirs is not the one that is meant, whatever `ca`
   * says. For addresses that somebody else has told us.
   */
  refusedCa?: string;
  /** Through which it is reached; absent: directly. */
  proxy?: Proxy;
  /** Default namespace of the context. */
  namespace?: string;
}

/** What `tls.connect` needs to reach the server. */
export interface TlsTarget {
  host: string;
  port: number;
  servername?: string;
  proxy?: Proxy;
  secureContext: ReturnType<typeof createSecureContext>;
  rejectUnauthorized: boolean;
  /** The name in the certificate may be another address than the one that we dial, and its authority may be refused. */
  checkServerIdentity?: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** Of those that are in use: a secure context costs milliseconds, and exec, attach and port-forward dial each time. */
const targets = new WeakMap<Credentials, TlsTarget>();

/** One and the same for the same credentials, which nobody changes. */
export function tlsTarget(credentials: Credentials): TlsTarget {
  const known = targets.get(credentials);
  if (known !== undefined) return known;
  const made = makeTarget(credentials);
  targets.set(credentials, made);
  return made;
}

function makeTarget(credentials: Credentials): TlsTarget {
  const {
    server,
    ca,
    clientCert,
    tlsServerName,
    insecureSkipTlsVerify = false,
    refusedCa,
    proxy,
  } = credentials;
  const options: SecureContextOptions = { minVersion: 'TLSv1.2' };
  if (ca !== undefined) options.ca = ca;
  if (clientCert !== undefined) Object.assign(options, clientCert);
  const { host, port } = hostAndPort(server);
  const name = tlsServerName ?? host;
  const refused = refusedCa === undefined ? undefined : new Authorities(refusedCa);
  return {
    host,
    port,
    ...(proxy && { proxy }),
    // Server name indication does not allow IP addresses (RFC 6066, section 3).
    ...(isIP(name) === 0 && { servername: name }),
    checkServerIdentity: (_host, certificate) =>
      checkServerIdentity(name, certificate) ?? refusalOf(certificate, refused),
    secureContext: createSecureContext(options),
    rejectUnauthorized: !insecureSkipTlsVerify,
  };
}

function refusalOf(certificate: PeerCertificate, refused: Authorities | undefined): Error | undefined {
  if (refused?.knowsAnyOf(certificate) !== true) return undefined;
  return new TributaryError(
    'Forbidden',
    'the server there has a certificate of the authority of this very cluster: it is no API server of another one',
  );
}

/** Whether connections with `one` also serve `other`: all but the token, which each request carries, must be equal. */
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
      // The kubelet may be replacing the volume just now; the last token is still valid for a while.
      if (token === undefined) throw error;
    }
    return token;
  };
}
