import { createPublicKey, verify, type webcrypto } from 'node:crypto';
import type * as X509 from '@peculiar/x509';

import { REQUEST_REASONS } from '../api/names.ts';
import { certificateSigningRequests } from '../api/resources.ts';
import type { CertificateSigningRequest } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { ECDSA_P256, loadX509 } from '../lib/x509.ts';
import { alternativeNamesOf, type CertificateSubject, nameOf } from './self-signed.ts';

/** A parsed request. `other` names what was found besides: further subject attributes, names, extensions. */
export interface ParsedRequest extends CertificateSubject {
  other: string[];
}

type Library = typeof X509.default;

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
/** Ours have 600 characters; each further address adds 30. */
const MAX_LENGTH = 8_192;

/** A PKCS #10 request (RFC 2986), PEM. */
export async function createSigningRequest(
  subject: CertificateSubject,
  keys: webcrypto.CryptoKeyPair,
): Promise<string> {
  const x509 = await loadX509();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: nameOf(subject),
    keys,
    signingAlgorithm: ECDSA_P256,
    extensions: [new x509.SubjectAlternativeNameExtension(alternativeNamesOf(subject))],
  });
  return `${request.toString('pem')}\n`;
}

/**
 * Reads such a request and checks that its sender holds the key. Throws for anything else: another algorithm, more
 * than one request, or an encoding that none of our agents writes. The signer reads the bytes again with another
 * parser, so nothing may be in them that this one passes over.
 */
export async function parseSigningRequest(text: string): Promise<ParsedRequest> {
  if (text.length > MAX_LENGTH) throw new RangeError('the request is too long');
  const match =
    /^\s*-----BEGIN CERTIFICATE REQUEST-----([\sA-Za-z0-9+/=]+)-----END CERTIFICATE REQUEST-----\s*$/.exec(
      text,
    );
  if (match?.[1] === undefined) throw new RangeError('not one PEM certificate request');
  const x509 = await loadX509();
  const request = readExactly(x509, Buffer.from(match[1], 'base64'));
  const parsed: ParsedRequest = { commonName: '', organizations: [], dnsNames: [], ips: [], other: [] };
  readSubject(x509, request.subjectName, parsed);
  readAttributes(x509, request.attributes, parsed);
  return parsed;
}

/** The request, if its sender holds the key and writing it again gives the same bytes: none after or in between. */
function readExactly(x509: Library, der: Buffer): X509.Pkcs10CertificateRequest {
  class Request extends x509.Pkcs10CertificateRequest {
    writtenAgain(): ArrayBuffer {
      return new x509.Pkcs10CertificateRequest(this.asn).rawData;
    }
    /** By OpenSSL, which wants the signature itself in DER; the library passes over some changes of its form. */
    isSigned(): boolean {
      const { certificationRequestInfoRaw: signed = new ArrayBuffer(0) } = this.asn;
      const key = createPublicKey({
        key: Buffer.from(this.publicKey.rawData),
        format: 'der',
        type: 'spki',
      });
      return verify('sha256', Buffer.from(signed), key, Buffer.from(this.signature));
    }
  }
  const request = new Request(Uint8Array.from(der));
  if (!isSame(request.writtenAgain(), der)) throw new RangeError('the request holds more than its fields');
  const { signatureAlgorithm, publicKey } = request;
  if (publicKey.algorithm.name !== 'ECDSA' || signatureAlgorithm.hash.name !== 'SHA-256') {
    throw new RangeError('only ECDSA with SHA-256 is accepted');
  }
  if (!request.isSigned()) throw new RangeError('the signature does not match');
  return request;
}

const isSame = (one: ArrayBuffer, other: ArrayBuffer | Buffer): boolean =>
  Buffer.from(one).equals(Buffer.isBuffer(other) ? other : Buffer.from(other));

function readSubject(x509: Library, name: X509.Name, parsed: ParsedRequest): void {
  const attributes = name.toJSON();
  for (const [type, value] of attributes.flatMap(pairs)) {
    if (type === 'O') parsed.organizations.push(value);
    else if (type === 'CN' && parsed.commonName === '') parsed.commonName = value;
    else parsed.other.push(`subject attribute ${type}`);
  }
  // A text has one encoding here; of the others two parsers need not make the same.
  if (!isSame(new x509.Name(attributes).toArrayBuffer(), name.toArrayBuffer())) {
    parsed.other.push('a subject in another encoding');
  }
}

const pairs = (attribute: Record<string, string[]>): (readonly [string, string])[] =>
  Object.entries(attribute).flatMap(([type, values]) => values.map((value) => [type, value] as const));

function readAttributes(x509: Library, attributes: readonly X509.Attribute[], parsed: ParsedRequest): void {
  for (const [index, attribute] of attributes.entries()) {
    const known = attribute.type === EXTENSION_REQUEST && attribute instanceof x509.ExtensionsAttribute;
    if (index > 0 || !known) parsed.other.push(`attribute ${attribute.type}`);
    else readExtensions(x509, attribute, parsed);
  }
}

function readExtensions(x509: Library, attribute: X509.ExtensionsAttribute, parsed: ParsedRequest): void {
  const before = parsed.other.length;
  for (const [index, extension] of attribute.items.entries()) {
    const isNames = extension instanceof x509.SubjectAlternativeNameExtension;
    if (isNames && index === 0) readAlternativeNames(extension, parsed);
    else parsed.other.push(`extension ${extension.type}`);
  }
  if (parsed.other.length > before) return;
  const again = new x509.ExtensionsAttribute([
    new x509.SubjectAlternativeNameExtension(alternativeNamesOf(parsed)),
  ]);
  if (!isSame(again.rawData, attribute.rawData)) parsed.other.push('extensions in another encoding');
}

function readAlternativeNames({ names }: X509.SubjectAlternativeNameExtension, parsed: ParsedRequest): void {
  for (const { type, value } of names.toJSON()) {
    if (type === 'dns') parsed.dnsNames.push(value);
    else if (type === 'ip') parsed.ips.push(value);
    else parsed.other.push(`alternative name of type ${type}`);
  }
}

export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

/** Approves or denies the version that was judged: a request that was changed in between is refused as a conflict. */
export async function settleRequest(
  client: KubeClient,
  csr: CertificateSigningRequest,
  { type, message, nowMs }: { type: 'Approved' | 'Denied'; message: string; nowMs: number },
  signal: AbortSignal,
): Promise<void> {
  const lastUpdateTime = new Date(nowMs).toISOString();
  const condition = { type, status: 'True', reason: REQUEST_REASONS.decided, message, lastUpdateTime };
  const conditions = [...(csr.status?.conditions ?? []), condition];
  const settled = { ...csr, status: { ...csr.status, conditions } };
  await client.replace(certificateSigningRequests, settled, { subresource: 'approval', signal });
}
