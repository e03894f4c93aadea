import { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Who asks, as the authentication API describes a user. */
export interface UserInfo {
  name: string;
  uid?: string;
  groups: string[];
  extra?: Record<string, string[]>;
}

const GROUP_AUTHENTICATED = 'system:authenticated';

/** Every authenticated user is in this group; reviews of permissions rely on it. */
export const authenticated = (user: UserInfo): UserInfo =>
  user.groups.includes(GROUP_AUTHENTICATED)
    ? user
    : { ...user, groups: [...user.groups, GROUP_AUTHENTICATED] };

/**
 * Users known by client certificate: common name and organisations, as everywhere in Kubernetes. The TLS layer
 * verifies the chain at the handshake; a connection may outlive both the certificate and the bundle of
 * authorities, so each request looks again at what can have changed since.
 */

/** The certificates of a PEM bundle; text around them is permitted. */
function parseBundle(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

const isCurrent = (certificate: X509Certificate, nowMs: number): boolean =>
  certificate.validFromDate.getTime() <= nowMs && nowMs <= certificate.validToDate.getTime();

/** For connections older than the bundle: whether one of its authorities has itself signed the certificate. */
const isIssuedBy = (certificate: X509Certificate, authorities: X509Certificate[]): boolean =>
  authorities.some(
    (authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey),
  );

/** By digest of the certificate. An API server opens a connection with the same one for each stream, and reading a subject takes milliseconds. */
const known = new Map<string, UserInfo>();
const MAX_KNOWN = 64;

const values = (attribute: string | string[] | undefined): string[] =>
  attribute === undefined ? [] : [attribute].flat();

/** The verified user of a connection; undefined without a certificate that is good at this moment. */
function certificateUser(socket: TLSSocket, nowMs: number): UserInfo | undefined {
  if (!socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined || !isCurrent(certificate, nowMs)) return undefined;
  const digest = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  const read = known.get(digest) ?? readUser(socket, digest);
  if (read !== undefined && known.size < MAX_KNOWN) known.set(digest, read);
  return read;
}

function readUser(socket: TLSSocket, digest: string): UserInfo | undefined {
  const subject = socket.getPeerCertificate().subject as unknown as
    Record<string, string | string[] | undefined> | undefined;
  // Go, and with it every API server, takes the last of several common names.
  const name = values(subject?.['CN']).at(-1);
  if (name === undefined || name === '') return undefined;
  return {
    name,
    groups: values(subject?.['O']),
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${digest}`] },
  };
}

/** Browsers cannot set Authorization on a WebSocket; Kubernetes lets them put the token in a subprotocol. */
export const BEARER_SUBPROTOCOL = 'base64url.bearer.authorization.k8s.io.';

export const subprotocols = (header: string): string[] =>
  header
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** The bearer token of a request; undefined where there is none or more than one. */
export function bearerToken(headers: IncomingHttpHeaders): string | undefined {
  const match = /^bearer +([^\s]+) *$/i.exec(headers.authorization?.trim() ?? '');
  if (match !== null) return match[1];
  const offered = subprotocols(headers['sec-websocket-protocol'] ?? '').filter((item) =>
    item.startsWith(BEARER_SUBPROTOCOL),
  );
  const encoded = offered[0]?.slice(BEARER_SUBPROTOCOL.length);
  if (offered.length !== 1 || encoded === undefined || !/^[\w-]+$/.test(encoded)) return undefined;
  return Buffer.from(encoded, 'base64url').toString('utf8');
}

/**
 * Remembers under which bundle of client authorities each connection was verified. API servers keep connections
 * for hours; when an authority is withdrawn, those it vouched for lose their user with the next request.
 */
export class Connections {
  readonly #verifiedUnder = new WeakMap<TLSSocket, string>();
  #bundle = '';
  #authorities: X509Certificate[] = [];

  /** Throws when the bundle cannot be parsed; the one before stays in force. */
  use(bundle: string): void {
    this.#authorities = parseBundle(bundle);
    this.#bundle = bundle;
  }

  get authorities(): readonly X509Certificate[] {
    return this.#authorities;
  }

  secured(socket: TLSSocket): void {
    this.#verifiedUnder.set(socket, this.#bundle);
  }

  user(socket: TLSSocket, nowMs: number): UserInfo | undefined {
    const user = certificateUser(socket, nowMs);
    if (user === undefined || this.#verifiedUnder.get(socket) === this.#bundle) return user;
    const certificate = socket.getPeerX509Certificate();
    return certificate !== undefined && isIssuedBy(certificate, this.#authorities) ? user : undefined;
  }
}
