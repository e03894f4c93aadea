import { KeyObject, webcrypto } from 'node:crypto';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type * as X509 from '@peculiar/x509';

import type { KeyPair } from '../lib/source.ts';
import { ECDSA_P256, loadX509 } from '../lib/x509.ts';

/** What a serving certificate is asked for. */
export interface CertificateSubject {
  commonName: string;
  organizations: string[];
  dnsNames: string[];
  ips: string[];
}

/** One relative name for each organization: Go's parser, which API servers use, reads groups from each. */
export const nameOf = ({ organizations, commonName }: CertificateSubject): X509.JsonName => [
  ...organizations.map((organization) => ({ O: [organization] })),
  { CN: [commonName] },
];

export const alternativeNamesOf = ({
  dnsNames,
  ips,
}: Readonly<Pick<CertificateSubject, 'dnsNames' | 'ips'>>): X509.JsonGeneralName[] => [
  ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
  ...ips.map((ip) => ({ type: 'ip' as const, value: plainIp(ip) })),
];

/** Without an IPv4 tail (::ffff:1.2.3.4), of which the library keeps the first number only. */
function plainIp(ip: string): string {
  if (isIPv4(ip)) return ip;
  if (!isIPv6(ip) || ip.includes('%')) throw new RangeError(`not an IP address: ${ip}`);
  return new URL(`http://[${ip}]`).hostname.slice(1, -1);
}

/** Whether two texts mean the same address; IPv6 has many spellings. */
export function isSameIp(one: string, other: string): boolean {
  if (!(isIPv4(one) || isIPv6(one)) || isIPv4(one) !== isIPv4(other)) return false;
  const list = new BlockList();
  list.addAddress(one, isIPv4(one) ? 'ipv4' : 'ipv6');
  return list.check(other, isIPv4(other) ? 'ipv4' : 'ipv6');
}

export const generateKey = async (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ECDSA_P256, true, ['sign', 'verify']);

export const privatePem = ({ privateKey }: webcrypto.CryptoKeyPair): string =>
  KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' });

const VALID_MS = 365 * 24 * 60 * 60_000;

/**
 * What a kubelet serves while it has nothing better. API servers that do not verify kubelets (no
 * --kubelet-certificate-authority, kubeadm's default) work with it; the others refuse it, as they would no answer.
 */
export async function selfSigned(subject: CertificateSubject, nowMs: number): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKey();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(subject),
    keys,
    signingAlgorithm: ECDSA_P256,
    // An hour back, for clocks that are not in step.
    notBefore: new Date(nowMs - 3_600_000),
    notAfter: new Date(nowMs + VALID_MS),
    extensions: [new x509.SubjectAlternativeNameExtension(alternativeNamesOf(subject))],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: privatePem(keys) };
}
