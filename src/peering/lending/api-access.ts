import { API_SERVER_NAME, API_SERVERS, apiServersOf } from '../../api/api-servers.ts';
import { configMaps, endpointSlices } from '../../api/resources.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { TributaryError, errorMessage, ignoring } from '../../lib/errors.ts';
import { joinEndpoint } from '../../lib/endpoint.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { ApiAccess } from '../protocol/documents.ts';
import { deepEqual } from '../../lib/equality.ts';

const INTERVAL_MS = 60_000;
const RETRY_MS = 2000;
const DEFAULT_PORT = 443;

export interface ApiAccessOptions extends ClusterBasics {
  /** The namespace that we run in: every namespace has a ConfigMap with the authority of the API server. */
  systemNamespace: string;
  /** What the administrator has configured; then nothing is looked for. */
  given?: ApiAccess;
  /** How we reach it ourselves: the authority if the cluster shows none, the address if no other is found. */
  own?: ApiAccess;
}

/**
 * Where peers find our API server: at the configured address, else at the address behind the Service `kubernetes`,
 * which is that of the server itself. Never at the address of a Service or a pod, which means nothing outside of the cluster.
 */
export class ApiAccessFinder implements Component {
  readonly name = 'API server address for peers';
  readonly #options: ApiAccessOptions;
  readonly #background = new Background();
  readonly #changed = new Listeners();
  readonly onChange: Listeners['add'] = this.#changed.add;
  /** Bound. */
  readonly stop: Background['stop'] = this.#background.stop;
  #current: ApiAccess | undefined;

  constructor(options: ApiAccessOptions) {
    this.#options = options;
    this.#current = options.given;
  }

  get current(): ApiAccess | undefined {
    return this.#current;
  }

  /** Does not wait until the address is found: `onChange` tells of it. */
  start(): void {
    if (this.#options.given === undefined) this.#background.run(async (signal) => this.#keepLooking(signal));
  }

  async #keepLooking(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let complained = '';
    while (!signal.aborted) {
      try {
        this.#set(await this.#find(signal));
        complained = '';
      } catch (error) {
        const message = errorMessage(error);
        if (!signal.aborted && complained !== message)
          log.warn('own API server not found', { error: message });
        complained = message;
      }
      const pauseMs = this.#current === undefined ? RETRY_MS : INTERVAL_MS;
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
  }

  #set(found: ApiAccess): void {
    if (deepEqual(found, this.#current)) return;
    this.#current = found;
    this.#changed.tell();
  }

  async #find(signal: AbortSignal): Promise<ApiAccess> {
    const { own } = this.#options;
    const servers = await this.#servers(signal);
    const ca = (await this.#authority(signal)) ?? own?.ca;
    const current = this.#current?.server;
    // Keep an address that still serves: each change makes every peer write its kubeconfig again.
    const server = servers.find((it) => it === current) ?? servers[0];
    if (server !== undefined) return { server, ...(ca !== undefined && { ca }), serverName: API_SERVER_NAME };
    // An API server that restarts removes its address for a while; the address told before is still the best one.
    if (this.#current !== undefined) return this.#current;
    if (own !== undefined) return own;
    throw new TributaryError('NotFound', 'the EndpointSlice default/kubernetes names no address');
  }

  async #servers(signal: AbortSignal): Promise<string[]> {
    const slice = await this.#options.client
      .get(endpointSlices, API_SERVERS, { signal })
      .catch(ignoring('NotFound'));
    return apiServersOf(slice, DEFAULT_PORT).map(
      ({ address, port }) => `https://${joinEndpoint(address, port)}`,
    );
  }

  async #authority(signal: AbortSignal): Promise<string | undefined> {
    const ref = { namespace: this.#options.systemNamespace, name: 'kube-root-ca.crt' };
    const map = await this.#options.client.get(configMaps, ref, { signal }).catch(ignoring('NotFound'));
    const ca = map?.data?.['ca.crt'];
    return ca === '' ? undefined : ca;
  }
}
