import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { SecretKeyRef } from '../../api/peer-selector.ts';
import { secrets } from '../../api/resources.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { Secret } from '../../api/wire.ts';
import { type ControllerBasics, Controller } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import { errorMessage, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { Logger } from '../../lib/log.ts';
import { checkNetworkKey } from '../identity/network-key.ts';
import { networkKeyName } from '../policy/match.ts';

interface ReferencedSecretsOptions extends ControllerBasics {
  /** Only this namespace is looked at. */
  namespace: string;
  /** Names of the Secrets that somebody refers to now. */
  wanted: () => ReadonlySet<string>;
}

interface Held {
  resourceVersion: string;
  /** Base64 by key, as in the Secret. */
  data: Readonly<Record<string, string>>;
}

/**
 * The Secrets that objects of ours refer to. Of all Secrets the metadata is watched; the data is read only of those that
 * are referred to.
 */
export class ReferencedSecrets {
  readonly #options: ReferencedSecretsOptions;
  readonly #metadata: Informer<Secret>;
  readonly #controller: Controller;
  readonly #held = new Map<string, Held>();
  readonly #changed = new Listeners<[name: string]>();
  /** Calls back with the name of each Secret whose data has changed. */
  readonly onChange: Listeners<[name: string]>['add'] = this.#changed.add;

  constructor(options: ReferencedSecretsOptions) {
    const { client, clock, log, metrics, namespace } = options;
    this.#options = options;
    this.#metadata = new Informer<Secret>({
      client,
      type: secrets,
      list: { namespace, metadataOnly: true },
      clock,
      log,
      name: 'secrets referred to',
      transform: ({ metadata: { name, uid, resourceVersion, creationTimestamp } }) => ({
        metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
      }),
    });
    this.#metadata.onChange((key) => this.#controller.add(key.slice(namespace.length + 1)));
    this.#controller = new Controller({
      name: 'secrets referred to',
      concurrency: 2,
      reconcile: async (name, { signal }) => this.#reconcile(name, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  /**
   * They start after whatever `wanted` looks at. They are ready when the data of what is referred to has been read, save that of
   * which the first read has failed: the controller goes on with that.
   */
  components(): Component[] {
    const read: Component = {
      name: 'secrets read',
      start: async (signal) => {
        for (const name of this.#options.wanted()) await this.#readFirst(name, signal);
      },
    };
    return [this.#metadata, read, this.#controller];
  }

  /** Call this when what is referred to may have changed. */
  refresh(): void {
    for (const name of new Set([...this.#held.keys(), ...this.#options.wanted()])) this.#controller.add(name);
  }

  /** The value, without the end of line that many tools write after it; undefined: there is none. */
  value({ name, key }: Required<SecretKeyRef>): Buffer | undefined {
    const data = this.#held.get(name)?.data;
    if (data === undefined || !Object.hasOwn(data, key)) return undefined;
    return withoutLineEnd(Buffer.from(data[key] ?? '', 'base64'));
  }

  async #readFirst(name: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#reconcile(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#options.log.warn('a Secret cannot be read yet', { name, error: errorMessage(error) });
      this.#controller.add(name);
    }
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const { namespace, wanted, client } = this.#options;
    const version = this.#metadata.get(`${namespace}/${name}`)?.metadata.resourceVersion;
    const held = this.#held.get(name);
    if (version === undefined || !wanted().has(name)) return this.#keep(name, undefined);
    if (held?.resourceVersion === version) return;
    const found = await client.get(secrets, { namespace, name }, { signal }).catch(ignoring('NotFound'));
    const { metadata, data = {} } = found ?? {};
    this.#keep(name, metadata && { resourceVersion: metadata.resourceVersion, data });
  }

  #keep(name: string, held: Held | undefined): void {
    const isNews = held !== undefined || this.#held.has(name);
    if (held === undefined) this.#held.delete(name);
    else this.#held.set(name, held);
    if (isNews) this.#changed.tell(name);
  }
}

function withoutLineEnd(bytes: Buffer): Buffer {
  let end = bytes.length;
  if (bytes[end - 1] === 0x0a) end--;
  if (end < bytes.length && bytes[end - 1] === 0x0d) end--;
  return bytes.subarray(0, end);
}

/** With the default that the CRDs have. */
export const joinTokenRef = (ref: SecretKeyRef): Required<SecretKeyRef> => ({ key: 'token', ...ref });
const networkKeyRef = (ref: SecretKeyRef): Required<SecretKeyRef> => ({ key: 'key', ...ref });

/** A key that clusters of one owner share. */
export interface NamedKey {
  /** As `networkKeyName` writes it. */
  name: string;
  key: Uint8Array;
}

/** The network keys that policies refer to, each once, by name. */
export function networkKeyRefs(
  policies: Iterable<Pick<AcceptancePolicy | SharingPolicy, 'spec'>>,
): Map<string, SecretKeyRef> {
  const refs = new Map<string, SecretKeyRef>();
  for (const { spec } of policies) {
    const ref = spec.peers.networkKeySecretRef;
    if (ref !== undefined) refs.set(networkKeyName(ref), ref);
  }
  return refs;
}

/** The keys that are there and fit for use. What is wrong with one is logged once. */
export class NetworkKeys {
  readonly #value: (ref: Required<SecretKeyRef>) => Buffer | undefined;
  readonly #log: Logger;
  readonly #complaints = new Map<string, string>();

  constructor(value: (ref: Required<SecretKeyRef>) => Buffer | undefined, log: Logger) {
    this.#value = value;
    this.#log = log;
  }

  read(refs: ReadonlyMap<string, SecretKeyRef>): NamedKey[] {
    for (const name of this.#complaints.keys()) if (!refs.has(name)) this.#complaints.delete(name);
    return [...refs].flatMap(([name, ref]) => {
      const key = this.#usable(name, networkKeyRef(ref));
      return key === undefined ? [] : [{ name, key }];
    });
  }

  /** Throws Invalid with what `read` has found to be wrong with the key of that name. */
  check(name: string): void {
    const message = this.#complaints.get(name);
    if (message !== undefined) throw new TributaryError('Invalid', message);
  }

  #usable(name: string, ref: Required<SecretKeyRef>): Uint8Array | undefined {
    try {
      const value = this.#value(ref);
      if (value === undefined) {
        throw new Error(
          `Secret ${ref.name} with key ${ref.key} is not there; policies that name it mean nobody`,
        );
      }
      const key = checkNetworkKey(value, `network key ${name}`);
      this.#complaints.delete(name);
      return key;
    } catch (error) {
      this.#complain(name, errorMessage(error));
      return undefined;
    }
  }

  #complain(name: string, message: string): void {
    if (this.#complaints.get(name) === message) return;
    this.#complaints.set(name, message);
    this.#log.warn('network key cannot be used', { name, error: message });
  }
}
