import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/gu;
/** No server sends more. */
const MOST_IN_CHAIN = 16;

/** The certificates in a PEM text. Throws where one of them is none. */
export const certificatesIn = (pem: string): X509Certificate[] =>
  (pem.match(BLOCK) ?? []).map((block) => new X509Certificate(block));

/**
 * The authorities of one cluster, by their keys: anybody can make another certificate for a key that is not theirs, but
 * nobody else can sign with it.
 */
export class Authorities {
  readonly #keys: readonly KeyObject[];
  readonly #prints: ReadonlySet<string>;

  /** Of a PEM bundle; throws where it is none. */
  constructor(pem: string) {
    this.#keys = certificatesIn(pem).map(({ publicKey }) => publicKey);
    this.#prints = new Set(this.#keys.map(printOf));
  }

  /** Whether it has the key of one of them, whatever else it says. */
  isOne(certificate: X509Certificate): boolean {
    return this.#prints.has(printOf(certificate.publicKey));
  }

  /** Whether it is one of them, or one of them has signed it. */
  knows(certificate: X509Certificate): boolean {
    return this.isOne(certificate) || this.#keys.some((key) => isSignedWith(certificate, key));
  }

  /** The same, for any certificate of a chain as Node shows it. */
  knowsAnyOf(chain: PeerCertificate): boolean {
    let one: Partial<ReturnType<typeof asDetailed>> | undefined = asDetailed(chain);
    for (let seen = 0; one?.raw !== undefined && seen < MOST_IN_CHAIN; seen += 1) {
      if (this.knows(new X509Certificate(one.raw))) return true;
      // A root is its own issuer.
      one = one.issuerCertificate === one ? undefined : one.issuerCertificate;
    }
    return false;
  }
}

const asDetailed = (chain: PeerCertificate): PeerCertificate & { issuerCertificate?: PeerCertificate } =>
  chain;

const printOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');

function isSignedWith(certificate: X509Certificate, key: KeyObject): boolean {
  try {
    return certificate.verify(key);
  } catch {
    // A key of another kind than the signature.
    return false;
  }
}
