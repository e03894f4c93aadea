import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { UserInfo } from './user.ts';

/**
 * Users known by client certificate: common name and organisations, as everywhere in Kubernetes. The TLS layer
 * verifies the chain at the handshake; a connection may outlive both the certificate and the bundle of
 * authorities, so each request looks again at what can have changed since.
 */

/** The certificates of a PEM bundle; text around them is permitted. */
export function parseBundle(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

const isCurrent = (certificate: X509Certificate, nowMs: number): boolean =>
  certificate.validFromDate.getTime() <= nowMs && nowMs <= certificate.validToDate.getTime();

/** For connections older than the bundle: whether one of its authorities has itself signed the certificate. */
export const isIssuedBy = (certificate: X509Certificate, authorities: X509Certificate[]): boolean =>
  authorities.some(
    (authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey),
  );

const values = (attribute: string | string[] | undefined): string[] =>
  attribute === undefined ? [] : [attribute].flat();

/** The verified user of a connection; undefined without a certificate that is good at this moment. */
export function certificateUser(socket: TLSSocket, nowMs: number): UserInfo | undefined {
  if (!socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined || !isCurrent(certificate, nowMs)) return undefined;
  const subject = socket.getPeerCertificate().subject as unknown as
    Record<string, string | string[] | undefined> | undefined;
  // Go, and with it every API server, takes the last of several common names.
  const name = values(subject?.['CN']).at(-1);
  if (name === undefined || name === '') return undefined;
  const digest = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    name,
    groups: values(subject?.['O']),
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${digest}`] },
  };
}
