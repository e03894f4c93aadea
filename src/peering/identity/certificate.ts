import { createHash, KeyObject, webcrypto } from 'node:crypto';
import type * as X509 from '@peculiar/x509';
import { Backoff, type Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { type KeyPair, type Source, Variable } from '../../lib/source.ts';
import { ECDSA_P256, loadX509 } from '../../lib/x509.ts';

/** Who signs certificates: an identity. */
export interface CertificateSigner {
  readonly clusterID: string;
  readonly publicKey: Uint8Array;
  certificateKeys(): webcrypto.CryptoKeyPair;
}

const ED25519 = { name: 'Ed25519' } as const;
export const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
export const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/** Certificates are valid from so long before now, since clocks differ. */
export const BACKDATED_MS = 3_600_000;
/** "No well-defined expiration date" (RFC 5280, section 4.1.2.5): an identity is valid as long as its key. */
const NEVER = new Date('9999-12-31T23:59:59Z');

/** The name in a cluster's certificates. It is never resolved. */
export const serverNameOf = (clusterID: string): string => `${clusterID}.tributary`;

/** A leaf for TLS with a key of its own, followed by the certificate of the identity. */
export async function issueLeaf(
  signer: CertificateSigner,
  { nowMs, lifeMs }: { nowMs: number; lifeMs: number },
): Promise<KeyPair> {
  const x509 = await loadX509();
  const authority = await identityCertificate(x509, signer);
  const keys = await webcrypto.subtle.generateKey(ECDSA_P256, true, ['sign', 'verify']);
  const leaf = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [signer.clusterID] }],
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey: signer.certificateKeys().privateKey,
    signingAlgorithm: ED25519,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + lifeMs),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([SERVER_AUTH, CLIENT_AUTH]),
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: serverNameOf(signer.clusterID) }]),
    ],
  });
  return {
    certificate: `${leaf.toString('pem')}\n${authority.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }),
  };
}

/** It has always the same bytes: Ed25519 signatures are deterministic, and nothing in it depends on the time. */
async function identityCertificate(
  x509: typeof X509.default,
  signer: CertificateSigner,
): Promise<X509.X509Certificate> {
  return x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [`${signer.clusterID} identity`] }],
    keys: signer.certificateKeys(),
    signingAlgorithm: ED25519,
    serialNumber: serialOf(signer.publicKey),
    notBefore: new Date(0),
    notAfter: NEVER,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
}

/** Positive and of full length, as RFC 5280 demands. */
function serialOf(publicKey: Uint8Array): string {
  const digest = createHash('sha256').update(publicKey).digest().subarray(0, 16);
  digest[0] = (digest.readUInt8(0) & 0x3f) | 0x40;
  return digest.toString('hex');
}

export interface PeeringCertificateOptions extends Basics {
  /** It must be loaded when this starts. */
  signer: CertificateSigner;
  random: Random;
  /** How long a leaf is valid. Default 24 h. */
  lifeMs?: number;
}

const DAY_MS = 24 * 3_600_000;
/** How often the clocks are looked at: timers stand still while a machine sleeps. */
const LOOK_AGAIN_MS = 60_000;
const RETRY_BASE_MS = 1_000;
const RETRY_CAP_MS = 60_000;

interface Issued {
  wallMs: number;
  monotonicMs: number;
  /** Time after which it is replaced. */
  restMs: number;
}

/** Our TLS leaf and its key, replaced by a fresh one after about two thirds of its life. Both live in memory only. */
export class PeeringCertificate implements Component, Source<KeyPair> {
  readonly name = 'peering certificate';
  readonly #options: PeeringCertificateOptions;
  readonly #lifeMs: number;
  readonly #pair = new Variable<KeyPair>({ certificate: '', key: '' });
  readonly subscribe: Variable<KeyPair>['subscribe'] = this.#pair.subscribe;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;
  #issued: Issued = { wallMs: 0, monotonicMs: 0, restMs: 0 };

  constructor(options: PeeringCertificateOptions) {
    this.#options = options;
    this.#lifeMs = options.lifeMs ?? DAY_MS;
  }

  current(): KeyPair {
    return this.#pair.current();
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.renew();
    this.#background.run(async (signal) => this.#run(signal));
  }

  /** Makes a fresh leaf at once, for new connections. */
  async renew(): Promise<void> {
    const { signer, clock, random } = this.#options;
    const wallMs = clock.now();
    const pair = await issueLeaf(signer, { nowMs: wallMs, lifeMs: this.#lifeMs });
    const restMs = this.#lifeMs * (0.6 + 0.1 * random());
    this.#issued = { wallMs, monotonicMs: clock.monotonic(), restMs };
    this.#pair.set(pair);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#options;
    const backoff = new Backoff({ baseMs: RETRY_BASE_MS, capMs: RETRY_CAP_MS, random });
    while (!signal.aborted) {
      await clock.sleep(Math.min(Math.max(this.#leftMs(), 0), LOOK_AGAIN_MS), signal).catch(() => undefined);
      if (signal.aborted || this.#leftMs() > 0) continue;
      try {
        await this.renew();
        backoff.reset();
        log.info('peering certificate renewed', { lifeSeconds: Math.round(this.#lifeMs / 1000) });
      } catch (error) {
        log.warn('cannot renew the peering certificate', { error: errorMessage(error) });
        await clock.sleep(RETRY_BASE_MS + backoff.next(), signal).catch(() => undefined);
      }
    }
  }

  /** Time until the renewal is due by either clock. The wall clock may have been set, even to before the leaf was issued. */
  #leftMs(): number {
    const { clock } = this.#options;
    const { wallMs, monotonicMs, restMs } = this.#issued;
    const passed = clock.now() - wallMs;
    if (passed < -BACKDATED_MS / 2) return 0;
    return restMs - Math.max(passed, clock.monotonic() - monotonicMs);
  }
}
