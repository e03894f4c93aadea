import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { SecretKeyRef } from '../../api/peer-selector.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { checkNetworkKey } from '../join/network-key.ts';
import { networkKeyName } from '../policy/match.ts';
import type { NamedKey } from './ports.ts';
import { networkKeyRef } from './secrets.ts';

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

/** Those of them that are there and fit for use. What is wrong with one is logged once. */
export class NetworkKeys {
  readonly #value: (ref: { name: string; key: string }) => Buffer | undefined;
  readonly #log: Logger;
  readonly #complaints = new Map<string, string>();

  constructor(value: (ref: { name: string; key: string }) => Buffer | undefined, log: Logger) {
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

  /** Throws Invalid with what is wrong with the key of that name, once it was looked at. */
  check(name: string): void {
    const message = this.#complaints.get(name);
    if (message !== undefined) throw new TributaryError('Invalid', message);
  }

  #usable(name: string, ref: { name: string; key: string }): Uint8Array | undefined {
    const value = this.#value(ref);
    if (value === undefined) {
      this.#complain(
        name,
        `Secret ${ref.name} with key ${ref.key} is not there; policies that name it mean nobody`,
      );
      return undefined;
    }
    try {
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
