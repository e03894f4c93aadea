import { X509Certificate } from 'node:crypto';
import { CLOCK_SKEW_MS } from '../../api/limits.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { PeerIdentity } from '../ports.ts';
import { CLIENT_AUTH, SERVER_AUTH, serverNameOf } from './certificate.ts';
import { clusterIDOf, rawPublicKey } from './identity.ts';

/** The part of a TLS connection that is needed here. */
interface Presented {
  getPeerX509Certificate(): X509Certificate | undefined;
}

/** Ours are below 500 bytes each. */
const MAX_CERTIFICATE_BYTES = 4_096;

/** The certificates that the other end has presented, in order: at most three, which is one too many. */
export function presentedChain(socket: Presented): Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate = socket.getPeerX509Certificate();
  while (certificate !== undefined && chain.length < 3) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}

/**
 * Who presented this chain: [leaf, identity certificate], both DER. TLS has proved that they hold the leaf's key.
 * Throws Unauthorized with what is wrong.
 */
export function verifyChain(chain: readonly Uint8Array[], nowMs: number): PeerIdentity {
  const [leafBytes, identityBytes] = chain;
  if (leafBytes === undefined) throw refused('no certificate was presented');
  if (identityBytes === undefined || chain.length !== 2) {
    throw refused('a leaf and the identity that signed it are wanted, nothing else');
  }
  const leaf = parse(leafBytes);
  const identity = parse(identityBytes);
  const publicKey = identityKey(identity);
  const clusterID = clusterIDOf(publicKey);
  checkLeaf(leaf, identity, clusterID);
  checkTime(leaf, nowMs);
  return { clusterID, publicKey };
}

const refused = (message: string): TributaryError => new TributaryError('Unauthorized', message);

function parse(bytes: Uint8Array): X509Certificate {
  if (bytes.length > MAX_CERTIFICATE_BYTES) throw refused('a certificate is too large');
  try {
    return new X509Certificate(bytes);
  } catch {
    throw refused('a certificate cannot be parsed');
  }
}

/** Undefined where OpenSSL throws, so that what it cannot read is refused like everything else that is wrong. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function identityKey(identity: X509Certificate): Uint8Array {
  const key = attempt(() => identity.publicKey);
  const publicKey = key && rawPublicKey(key);
  if (key === undefined || publicKey === undefined) throw refused('the identity has no Ed25519 key');
  if (!identity.ca || attempt(() => identity.verify(key)) !== true) {
    throw refused('the identity certificate is not signed by its own key');
  }
  return publicKey;
}

function checkLeaf(leaf: X509Certificate, identity: X509Certificate, clusterID: string): void {
  const { asymmetricKeyType, asymmetricKeyDetails } = attempt(() => leaf.publicKey) ?? {};
  if (asymmetricKeyType !== 'ec' || asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw refused('the leaf has no P-256 key');
  }
  if (leaf.ca || !leaf.checkIssued(identity) || attempt(() => leaf.verify(identity.publicKey)) !== true) {
    throw refused('the leaf is not signed by the identity');
  }
  // The identity might sign other certificates one day; only those made for this purpose are accepted.
  const usages = leaf.keyUsage ?? [];
  if (!usages.includes(SERVER_AUTH) || !usages.includes(CLIENT_AUTH)) {
    throw refused('the leaf is not made for both ends of TLS');
  }
  if (leaf.subjectAltName !== `DNS:${serverNameOf(clusterID)}`) {
    throw refused(`the leaf does not name ${serverNameOf(clusterID)}`);
  }
}

/** Clocks may differ more than this allows: each leaf is valid from an hour before, and is replaced long before its end. */
function checkTime({ validFromDate, validToDate }: X509Certificate, nowMs: number): void {
  const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
  // So written that a date that cannot be read (NaN) is refused.
  if (!(from - CLOCK_SKEW_MS <= nowMs)) {
    throw refused(
      `the leaf is not valid yet (from ${iso(from)}, here it is ${iso(nowMs)}): compare the clocks`,
    );
  }
  if (!(nowMs <= to + CLOCK_SKEW_MS)) {
    throw refused(`the leaf has expired (at ${iso(to)}, here it is ${iso(nowMs)}): compare the clocks`);
  }
}

const iso = (ms: number): string => (Number.isNaN(ms) ? 'an unknown time' : new Date(ms).toISOString());
