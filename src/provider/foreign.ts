import { LABEL_PROVIDER } from '../api/names.ts';
import { secrets } from '../api/resources.ts';
import { type KubeconfigSecretRef, VIRTUAL_NODE_REASONS } from '../api/virtual-node.ts';
import type { Secret } from '../api/wire.ts';
import type { BackoffOptions } from '../lib/backoff.ts';
import type { Basics } from '../lib/basics.ts';
import type { KubeClient } from '../kube/client.ts';
import { credentialEnd } from '../kube/credential-end.ts';
import { type Credentials, sameButToken } from '../kube/credentials.ts';
import { createClient } from '../kube/http-client.ts';
import { Informer } from '../kube/informer.ts';
import { parseKubeconfig } from '../kube/kubeconfig.ts';
import { SwitchableClient } from '../kube/switchable-client.ts';
import type { Clock } from '../lib/clock.ts';
import { hostAndPort } from '../lib/endpoint.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';
import { nameOfProxy, proxyFor, type ProxySettings } from '../lib/proxy.ts';
import type { ContactReason } from './node/contact.ts';

export interface ForeignClusterOptions extends Basics {
  home: KubeClient;
  /** How the foreign API server is reached. */
  connect?: (credentials: Credentials, options: { clock: Clock; redial: BackoffOptions }) => KubeClient;
  secretRef: KubeconfigSecretRef;
  /** PEM of the authorities of the home API server. */
  homeCa?: string | undefined;
  /** The way out, where a person's kubeconfig names none; default: directly. */
  proxies?: ProxySettings | undefined;
}

/**
 * Some ten informers for each namespace ask the same server, which is not to be hammered. Shorter than the patience of a probe
 * (ForeignContact), which is to tell why nobody answers.
 */
const REDIAL: BackoffOptions = { baseMs: 1000, capMs: 4000, floor: 0.5 };

/**
 * The foreign API server, reached by the kubeconfig in a Secret. When the Secret changes, a new token is used for the next
 * requests; any other change makes a new client.
 */
export class ForeignCluster implements Component {
  readonly name = 'foreign-cluster';
  readonly client: SwitchableClient;
  readonly #options: ForeignClusterOptions;
  readonly #informer: Informer<Secret>;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  /** With the present token. */
  #credentials: Credentials | undefined;
  #token: Credentials['token'];
  #problem: { reason: ContactReason; message: string } | undefined;
  #text: string | undefined;
  #applying: Promise<void> = Promise.resolve();

  constructor(options: ForeignClusterOptions) {
    const { home, secretRef, clock, log } = options;
    this.#options = options;
    this.client = new SwitchableClient('the kubeconfig Secret has not been read yet');
    this.#informer = new Informer<Secret>({
      client: home,
      type: secrets,
      list: { namespace: secretRef.namespace, fieldSelector: `metadata.name=${secretRef.name}` },
      clock,
      log: log.named('foreign'),
    });
  }

  /** For connections that are made separately, such as upgrades. */
  get credentials(): Credentials | undefined {
    return this.#credentials;
  }

  /** Why there is no usable credential; undefined when there is one. */
  get problem(): { reason: ContactReason; message: string } | undefined {
    return this.#problem;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#informer.onChange(() => this.#schedule());
    await this.#informer.start(signal);
    this.#schedule();
    await this.#applying;
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    await this.#applying;
    await this.client.close();
  }

  #schedule(): void {
    this.#applying = this.#applying.then(async () => this.#apply());
  }

  async #apply(): Promise<void> {
    const { secretRef, clock, log } = this.#options;
    const { namespace, name, key = 'kubeconfig' } = secretRef;
    const where = `Secret "${namespace}/${name}"`;
    const secret = this.#informer.get(`${namespace}/${name}`);
    const data = secret?.data?.[key];
    if (data === undefined) {
      const message = secret === undefined ? `${where} does not exist` : `${where} has no key "${key}"`;
      await this.#fail(VIRTUAL_NODE_REASONS.secretNotFound, message);
      return;
    }
    if (data === this.#text) return;
    this.#text = data;
    try {
      const text = Buffer.from(data, 'base64').toString('utf8');
      // Never files: the text may have come from a peer.
      const named = await parseKubeconfig(text, { allowFiles: false, clock });
      const credentials = { ...named, ...this.#refused(secret), ...this.#through(secret, named) };
      this.#token = credentials.token;
      // A renewed token must fail no request and end no watch.
      if (this.#credentials === undefined || !sameButToken(this.#credentials, credentials)) {
        await this.#switch(credentials);
      }
      this.#problem = undefined;
      log.info('using the kubeconfig', {
        secret: `${namespace}/${name}`,
        server: credentials.server.host,
        ...(credentials.proxy && { proxy: nameOfProxy(credentials.proxy) }),
      });
      this.#listeners.tell();
    } catch (error) {
      await this.#fail(VIRTUAL_NODE_REASONS.kubeconfigInvalid, `${where}: ${errorMessage(error)}`);
    }
  }

  /** Whoever gets the address from a peer must not be led home by it: a person may do that, and means it. */
  #refused(secret: Secret | undefined): Pick<Credentials, 'refusedCa'> {
    const { homeCa } = this.#options;
    const isOfPeer = secret?.metadata.labels?.[LABEL_PROVIDER] !== undefined;
    return isOfPeer && homeCa !== undefined ? { refusedCa: homeCa } : {};
  }

  /** The kubeconfig of a peer says all of it, since role `cluster` has written it: a link begins in this cluster. */
  #through(secret: Secret | undefined, { proxy: named, server }: Credentials): Pick<Credentials, 'proxy'> {
    const isOfPeer = secret?.metadata.labels?.[LABEL_PROVIDER] !== undefined;
    const proxy = named ?? (isOfPeer ? undefined : proxyFor(this.#options.proxies, hostAndPort(server)));
    return proxy === undefined ? {} : { proxy };
  }

  /** When the credential in use ends, in milliseconds since 1970; undefined: nobody knows. */
  async credentialEnds(): Promise<number | undefined> {
    return this.#credentials === undefined ? undefined : credentialEnd(this.#credentials);
  }

  async #switch(credentials: Credentials): Promise<void> {
    const { connect = createClient, clock } = this.#options;
    const token: NonNullable<Credentials['token']> = async (...args) => this.#token?.(...args);
    const current = { ...credentials, ...(credentials.token !== undefined && { token }) };
    await this.client.use(connect(current, { clock, redial: REDIAL }));
    this.#credentials = current;
  }

  async #fail(reason: ContactReason, message: string): Promise<void> {
    this.#credentials = undefined;
    this.#problem = { reason, message };
    this.#text = undefined;
    await this.client.use(undefined, message);
    this.#listeners.tell();
  }
}
