import { X509Certificate } from 'node:crypto';

import { certificateSigningRequests } from '../api/resources.ts';
import type { CertificateSigningRequest } from '../api/wire.ts';
import type { ClusterBasics, KubeClient } from '../kube/client.ts';
import { Backoff, type Random } from '../lib/backoff.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import { type KeyPair, type Source, Variable } from '../lib/source.ts';
import { createSigningRequest, KUBELET_SERVING_SIGNER, settleRequest } from './signing-request.ts';
import { type CertificateSubject, generateKey, privatePem, selfSigned } from './self-signed.ts';

/** What the signer permits for a key that cannot encipher. */
const SERVING_USAGES: readonly string[] = ['digital signature', 'server auth'];

/** Where the certificate stands, for a condition of the VirtualNode. */
export interface ServingCertificateState {
  state: 'selfSigned' | 'pendingApproval' | 'issued';
  message: string;
  /** End of the certificate's life, once it is issued. */
  expiresMs?: number;
}

interface ServingCertificateOptions extends ClusterBasics {
  random: Random;
  nodeName: string;
  /** Names and addresses at which API servers reach the kubelet port. */
  addresses: () => { dnsNames: string[]; ips: string[] };
  changed?: (state: ServingCertificateState) => void;
  /** Approves our own requests: for a process that is the approver as well, and has no pod that would prove it. */
  approver?: KubeClient;
}

const POLL_FIRST_MS = 500;
const POLL_MAX_MS = 10_000;
/** A person who has just approved the request sees it used at once; who has not for so long, will not in this moment. */
const ATTENTIVE_MS = 300_000;
const POLL_ATTENTIVE_MS = 1000;
/** How often the addresses are compared with those in the certificate. */
const LOOK_AGAIN_MS = 60_000;
const RETRY = { baseMs: 2_000, capMs: 300_000 };
const MIN_RETRY_MS = 500;

/**
 * The serving certificate of the kubelet API, from the cluster's own signer (CSR API). Until somebody approves
 * the request a self-signed one is served, as by a kubelet without --rotate-server-certificates; a node must not wait
 * for a human to run pods. The key never leaves memory.
 */
export class ServingCertificate implements Component, Source<KeyPair> {
  readonly name = 'serving certificate';
  readonly #options: ServingCertificateOptions;
  readonly #pair = new Variable<KeyPair>({ certificate: '', key: '' });
  readonly subscribe: Variable<KeyPair>['subscribe'] = this.#pair.subscribe;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  current(): KeyPair {
    return this.#pair.current();
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clock, changed } = this.#options;
    this.#pair.set(await selfSigned(this.#subject(), clock.now()));
    signal.throwIfAborted();
    changed?.({ state: 'selfSigned', message: 'serving a self-signed certificate' });
    this.#background.run(async (signal) => this.#run(signal));
  }

  #subject(): CertificateSubject {
    const { nodeName, addresses } = this.#options;
    const { dnsNames, ips } = addresses();
    return {
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      dnsNames: dnsNames.toSorted(),
      ips: ips.toSorted(),
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#options;
    const backoff = new Backoff({ ...RETRY, random });
    while (!signal.aborted) {
      try {
        const subject = this.#subject();
        const pair = await this.#request(subject, signal);
        this.#install(pair);
        backoff.reset();
        await this.#untilDue(pair, JSON.stringify(subject), signal);
      } catch (error) {
        if (signal.aborted) return;
        const waitMs = MIN_RETRY_MS + backoff.next();
        const fields = { error: errorMessage(error), retryMs: Math.round(waitMs) };
        log.warn('cannot obtain a serving certificate', fields);
        await clock.sleep(waitMs, signal).catch(() => undefined);
      }
    }
  }

  #install(pair: KeyPair): void {
    const { log, changed } = this.#options;
    const expires = new X509Certificate(pair.certificate).validToDate;
    const validTo = expires.toISOString();
    this.#pair.set(pair);
    log.info('serving certificate issued', { validTo });
    const message = `serving certificate valid until ${validTo}`;
    changed?.({ state: 'issued', message, expiresMs: expires.getTime() });
  }

  /** One request from its creation to its certificate; throws when it was refused or has vanished. */
  async #request(subject: CertificateSubject, signal: AbortSignal): Promise<KeyPair> {
    const { client, clock, log, changed, nodeName, approver } = this.#options;
    const keys = await generateKey();
    const request = Buffer.from(await createSigningRequest(subject, keys)).toString('base64');
    const created = await client.create(
      certificateSigningRequests,
      {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { generateName: `${nodeName.slice(0, 200)}-serving-` },
        spec: { request, signerName: KUBELET_SERVING_SIGNER, usages: [...SERVING_USAGES] },
      },
      { signal },
    );
    const { name } = created.metadata;
    const waiting = `waiting for approval of the serving certificate: kubectl certificate approve ${name}`;
    log.info(`serving certificate requested; ${waiting}`, { csr: name });
    changed?.({ state: 'pendingApproval', message: waiting });
    if (approver !== undefined) {
      const message = `serving certificate of ${subject.commonName}, for the process that asks`;
      await settleRequest(approver, created, { type: 'Approved', message, nowMs: clock.now() }, signal);
    }
    const certificate = await this.#untilIssued(name, waiting, signal);
    return { certificate, key: privatePem(keys) };
  }

  async #untilIssued(name: string, waiting: string, signal: AbortSignal): Promise<string> {
    const { clock, log, changed } = this.#options;
    const began = clock.monotonic();
    let told = false;
    let isApproved = false;
    for (let waitMs = POLL_FIRST_MS; ;) {
      await clock.sleep(waitMs, signal);
      const csr = await this.#read(name, signal);
      const certificate = csr === undefined ? undefined : outcome(csr);
      if (certificate !== undefined) return Buffer.from(certificate, 'base64').toString('utf8');
      if (!isApproved && csr?.status?.conditions?.some(({ type }) => type === 'Approved') === true) {
        isApproved = true;
        const message = `${name} is approved; waiting for the signer of the cluster to issue the certificate`;
        log.info(message);
        changed?.({ state: 'pendingApproval', message });
      }
      const isLate = clock.monotonic() - began >= ATTENTIVE_MS;
      if (isLate && !told) log.warn(waiting);
      told ||= isLate;
      waitMs = isLate ? Math.min(waitMs * 2, POLL_MAX_MS) : POLL_ATTENTIVE_MS;
    }
  }

  /** Undefined when the server cannot tell now; the request itself is still there. */
  async #read(name: string, signal: AbortSignal): Promise<CertificateSigningRequest | undefined> {
    try {
      return await this.#options.client.get(certificateSigningRequests, { name }, { signal });
    } catch (error) {
      if (hasCode(error, 'NotFound')) throw new Error(`request ${name} was deleted`, { cause: error });
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  /** Until 70 to 90 % of the certificate's life have passed, or it no longer names what it should. */
  async #untilDue(pair: KeyPair, subject: string, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    const dueMs = renewalTime(pair.certificate, random);
    while (clock.now() < dueMs && JSON.stringify(this.#subject()) === subject) {
      await clock.sleep(Math.min(LOOK_AGAIN_MS, dueMs - clock.now()), signal);
    }
  }
}

/** Random, so that not all agents ask at once; early enough to survive days without a signer. */
export function renewalTime(certificate: string, random: Random): number {
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const from = validFromDate.getTime();
  return from + (validToDate.getTime() - from) * (0.7 + 0.2 * random());
}

/** The certificate in base64; undefined while there is none; throws when there will be none. */
function outcome({ metadata, status }: CertificateSigningRequest): string | undefined {
  const ended = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (ended !== undefined) {
    throw new Error(`request ${metadata.name} was ${ended.type.toLowerCase()}: ${ended.message ?? ''}`);
  }
  return status?.certificate === undefined || status.certificate === '' ? undefined : status.certificate;
}
