import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { certificateUser, isIssuedBy, parseBundle } from './auth-certificate.ts';
import type { UserInfo } from './user.ts';

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
