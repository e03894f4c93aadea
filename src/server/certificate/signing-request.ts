import { createPublicKey, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import {
  TAG,
  bitString,
  context,
  encode,
  integer,
  objectIdentifier,
  partsOf,
  readElements,
  readObjectIdentifier,
  readString,
  sequence,
} from './der.ts';
import type { Element } from './der.ts';

/** What a serving certificate is asked for. */
export interface CertificateSubject {
  commonName: string;
  organizations: string[];
  dnsNames: string[];
  ips: string[];
}

/** A parsed request. `other` names what was found besides: further subject attributes, names, extensions. */
export interface ParsedRequest extends CertificateSubject {
  other: string[];
}

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  extensionRequest: '1.2.840.113549.1.9.14',
  subjectAltName: '2.5.29.17',
} as const;

const GENERAL_NAME = { dns: context(2, false), ip: context(7, false) } as const;

export const pem = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der.toString('base64').replaceAll(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`;

export const ecdsaWithSha256: Buffer = sequence(objectIdentifier(OID.ecdsaWithSha256));

const attribute = (oid: string, value: string): Buffer =>
  encode(TAG.set, sequence(objectIdentifier(oid), encode(TAG.utf8String, Buffer.from(value))));

export const encodeName = (subject: CertificateSubject): Buffer =>
  sequence(
    ...subject.organizations.map((organization) => attribute(OID.organization, organization)),
    attribute(OID.commonName, subject.commonName),
  );

/** The extension with all names of the subject. */
export function subjectAltName({ dnsNames, ips }: CertificateSubject): Buffer {
  const names = [
    ...dnsNames.map((name) => encode(GENERAL_NAME.dns, Buffer.from(name, 'latin1'))),
    ...ips.map((ip) => encode(GENERAL_NAME.ip, ipBytes(ip))),
  ];
  return sequence(objectIdentifier(OID.subjectAltName), encode(TAG.octetString, sequence(...names)));
}

/** A PKCS #10 request (RFC 2986), PEM, signed with an ECDSA P-256 key. */
export function createSigningRequest(
  subject: CertificateSubject,
  keys: { publicKey: KeyObject; privateKey: KeyObject },
): string {
  const extensions = sequence(
    objectIdentifier(OID.extensionRequest),
    encode(TAG.set, sequence(subjectAltName(subject))),
  );
  const info = sequence(
    integer(Buffer.from([0])),
    encodeName(subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    encode(context(0, true), extensions),
  );
  const signature = sign('sha256', info, keys.privateKey);
  return pem('CERTIFICATE REQUEST', sequence(info, ecdsaWithSha256, bitString(signature)));
}

/**
 * Reads such a request and checks that its sender holds the key. Throws RangeError for anything else: another
 * algorithm, more than one request, or a form that none of our agents writes.
 */
export function parseSigningRequest(text: string): ParsedRequest {
  const match =
    /^\s*-----BEGIN CERTIFICATE REQUEST-----([\sA-Za-z0-9+/=]+)-----END CERTIFICATE REQUEST-----\s*$/.exec(
      text,
    );
  if (match?.[1] === undefined) throw new RangeError('not one PEM certificate request');
  const [outer, ...more] = readElements(Buffer.from(match[1], 'base64'));
  if (more.length > 0) throw new RangeError('bytes follow the request');
  const [info, algorithm, signature] = partsOf(outer, TAG.sequence);
  const [, name, key, attributes] = partsOf(info, TAG.sequence);
  if (info === undefined || key === undefined || !algorithm?.whole.equals(ecdsaWithSha256)) {
    throw new RangeError('only ECDSA with SHA-256 is accepted');
  }
  if (!isSigned(info.whole, key.whole, signature)) throw new RangeError('the signature does not match');
  const parsed: ParsedRequest = { commonName: '', organizations: [], dnsNames: [], ips: [], other: [] };
  for (const relative of partsOf(name, TAG.sequence)) readAttribute(relative, parsed);
  if (attributes !== undefined) readRequestAttributes(attributes, parsed);
  return parsed;
}

function isSigned(info: Buffer, spki: Buffer, signature: Element | undefined): boolean {
  if (signature?.tag !== TAG.bitString || signature.content[0] !== 0) return false;
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  return key.asymmetricKeyType === 'ec' && verify('sha256', info, key, signature.content.subarray(1));
}

function readAttribute(relative: Element, parsed: ParsedRequest): void {
  for (const pair of partsOf(relative, TAG.set)) {
    const [type, value] = partsOf(pair, TAG.sequence);
    const oid = readObjectIdentifier(type);
    if (oid === OID.organization) parsed.organizations.push(readString(value));
    else if (oid === OID.commonName && parsed.commonName === '') parsed.commonName = readString(value);
    else parsed.other.push(`subject attribute ${oid}`);
  }
}

function readRequestAttributes(attributes: Element, parsed: ParsedRequest): void {
  for (const item of partsOf(attributes, context(0, true))) {
    const [type, values] = partsOf(item, TAG.sequence);
    const oid = readObjectIdentifier(type);
    if (oid !== OID.extensionRequest) {
      parsed.other.push(`attribute ${oid}`);
      continue;
    }
    for (const list of partsOf(values, TAG.set)) {
      for (const extension of partsOf(list, TAG.sequence)) readExtension(extension, parsed);
    }
  }
}

function readExtension(extension: Element, parsed: ParsedRequest): void {
  const parts = partsOf(extension, TAG.sequence);
  const oid = readObjectIdentifier(parts[0]);
  const value = parts.at(-1);
  if (oid !== OID.subjectAltName || value?.tag !== TAG.octetString) {
    parsed.other.push(`extension ${oid}`);
    return;
  }
  for (const names of readElements(value.content)) {
    for (const name of partsOf(names, TAG.sequence)) {
      if (name.tag === GENERAL_NAME.dns) parsed.dnsNames.push(name.content.toString('latin1'));
      else if (name.tag === GENERAL_NAME.ip) parsed.ips.push(ipText(name.content));
      else parsed.other.push(`alternative name of type ${name.tag & 0x1f}`);
    }
  }
}

function ipBytes(ip: string): Buffer {
  if (isIPv4(ip)) return Buffer.from(ip.split('.').map(Number));
  if (!isIPv6(ip)) throw new RangeError(`not an IP address: ${ip}`);
  const plain = ip.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...quads: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = quads.map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail] = plain.split('::');
  const groups = (part: string | undefined): string[] =>
    (part ?? '').split(':').filter((group) => group !== '');
  const zeros = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: zeros }, () => '0'), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) throw new RangeError('an IP address has 4 or 16 bytes');
  const groups = Array.from({ length: 8 }, (_none, index) => bytes.readUInt16BE(index * 2).toString(16));
  return groups.join(':');
}

/** Whether two texts mean the same address; IPv6 has many spellings. */
export function isSameIp(one: string, other: string): boolean {
  if (!(isIPv4(one) || isIPv6(one)) || isIPv4(one) !== isIPv4(other)) return false;
  const list = new BlockList();
  list.addAddress(one, isIPv4(one) ? 'ipv4' : 'ipv6');
  return list.check(other, isIPv4(other) ? 'ipv4' : 'ipv6');
}
