import { createHmac, randomBytes } from 'node:crypto';

import { isClusterID } from '../../api/forms.ts';
import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { PRESHARED_HALVES_SECRET, PRESHARED_SECRET } from '../../api/own-network.ts';
import { secrets } from '../../api/resources.ts';
import type { Secret } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import { hasCode } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import type { Component } from '../../lib/lifecycle.ts';

const PURPOSE = 'tributary preshared v1';

/** Both sides compute the same key. Each half is base64 of 32 bytes. */
export function presharedKey(one: { id: string; half: string }, other: { id: string; half: string }): string {
  const [lower, higher] = one.id < other.id ? [one, other] : [other, one];
  const key = Buffer.concat([lower, higher].map(({ half }) => Buffer.from(half, 'base64')));
  return createHmac('sha256', key).update(PURPOSE).digest('base64');
}

export interface PresharedOptions {
  client: KubeClient;
  caches: Caches;
  namespace: string;
  own: string;
  /** Whether we give our half. */
  enabled: boolean;
}

/** What is wanted for one peer. */
export interface PresharedWish {
  /** Whether there is a tunnel. */
  wanted: boolean;
  /** The peer's half. null: it gives none. undefined: not heard since we started, so the key stays. */
  theirs: string | null | undefined;
  /** A text that people write. Whenever it changes, our half is made anew. */
  renew?: string;
}

/** Values by the name of their entry. null removes the entry. */
export type Entries = Record<string, string | null>;

export interface PresharedState {
  half?: string;
  renewed?: string;
  key?: string;
}

/** What is to be written next, if anything: our half before the key that is made of it. */
export function decidePreshared(
  ids: { own: string; peer: string },
  { half, renewed, key }: PresharedState,
  { wanted, theirs, renew, fresh }: PresharedWish & { fresh: () => string },
): { halves?: Entries; keys?: Entries } {
  const { own, peer } = ids;
  const marker = renewedEntry(peer);
  if (!wanted) {
    return {
      ...((half !== undefined || renewed !== undefined) && { halves: { [peer]: null, [marker]: null } }),
      ...(key !== undefined && { keys: { [peer]: null } }),
    };
  }
  if (half === undefined || renewed !== renew)
    return { halves: { [peer]: fresh(), [marker]: renew ?? null } };
  if (theirs === undefined) return {};
  const due = theirs === null ? undefined : presharedKey({ id: own, half }, { id: peer, half: theirs });
  return due === key ? {} : { keys: { [peer]: due ?? null } };
}

const renewedEntry = (peer: string): string => `${peer}.renewed`;

/** Keeps our halves and the keys made of them, in two Secrets: the gateway reads only the keys. */
export class PresharedKeys {
  readonly #options: PresharedOptions;
  readonly #halves: Cache<Secret>;
  readonly #keys: Cache<Secret>;
  /** Halves that were made and are not yet in the cache, so that one wish makes one half. */
  readonly #minted = new Map<string, { renew: string | undefined; half: string }>();

  constructor(options: PresharedOptions) {
    this.#options = options;
    this.#halves = this.#cache(PRESHARED_HALVES_SECRET);
    this.#keys = this.#cache(PRESHARED_SECRET);
  }

  caches(): Component[] {
    return [this.#halves, this.#keys];
  }

  onChange(listener: () => void): () => void {
    const ends = [this.#halves, this.#keys].map((cache) => cache.onChange(listener));
    return () => ends.forEach((end) => end());
  }

  /** Peers for which something is stored. */
  peers(): string[] {
    const { namespace } = this.#options;
    const names = [
      [this.#halves, PRESHARED_HALVES_SECRET] as const,
      [this.#keys, PRESHARED_SECRET] as const,
    ].flatMap(([cache, name]) => Object.keys(cache.get(`${namespace}/${name}`)?.data ?? {}));
    return [...new Set(names.filter((name) => isClusterID(name)))];
  }

  /** Our half for that peer, as it is stored. */
  half(peer: string): string | undefined {
    return this.#options.enabled ? this.#read(this.#halves, PRESHARED_HALVES_SECRET, peer) : undefined;
  }

  /** Makes at most one write. The next change of the cache brings the next step. */
  async reconcile(peer: string, wish: PresharedWish, signal: AbortSignal): Promise<void> {
    const { own, enabled } = this.#options;
    const halves = (name: string): string | undefined =>
      this.#read(this.#halves, PRESHARED_HALVES_SECRET, name);
    const [half, renewed, key] = [
      halves(peer),
      halves(renewedEntry(peer)),
      this.#read(this.#keys, PRESHARED_SECRET, peer),
    ];
    const due = decidePreshared({ own, peer }, present({ half, renewed, key }), {
      ...wish,
      wanted: wish.wanted && enabled,
      fresh: () => this.#mint(peer, wish.renew),
    });
    if (!wish.wanted || half === this.#minted.get(peer)?.half) this.#minted.delete(peer);
    if (due.halves) await this.#write(PRESHARED_HALVES_SECRET, this.#halves, due.halves, signal);
    if (due.keys) await this.#write(PRESHARED_SECRET, this.#keys, due.keys, signal);
  }

  #mint(peer: string, renew: string | undefined): string {
    const before = this.#minted.get(peer);
    if (before !== undefined && before.renew === renew) return before.half;
    const half = randomBytes(32).toString('base64');
    this.#minted.set(peer, { renew, half });
    return half;
  }

  #cache(name: string): Cache<Secret> {
    const { caches, namespace } = this.#options;
    return caches.of(secrets, {
      list: { namespace, fieldSelector: `metadata.name=${name}` },
      name: `cache of secret ${name}`,
    });
  }

  #read(cache: Cache<Secret>, secret: string, entry: string): string | undefined {
    const data = cache.get(`${this.#options.namespace}/${secret}`)?.data ?? {};
    const value = Object.hasOwn(data, entry) ? data[entry] : undefined;
    return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
  }

  async #write(name: string, cache: Cache<Secret>, entries: Entries, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    const data = Object.fromEntries(
      Object.entries(entries).map(([key, text]) => [
        key,
        text === null ? null : Buffer.from(text).toString('base64'),
      ]),
    );
    if (cache.get(`${namespace}/${name}`) !== undefined) {
      try {
        await client.patch(secrets, { namespace, name }, { type: 'merge', body: { data } }, { signal });
        return;
      } catch (error) {
        if (!hasCode(error, 'NotFound')) throw error;
      }
    }
    await this.#create(client, name, data, signal);
  }

  async #create(
    client: KubeClient,
    name: string,
    data: Record<string, string | null>,
    signal: AbortSignal,
  ): Promise<void> {
    const given = Object.entries(data).filter((each): each is [string, string] => each[1] !== null);
    const { namespace } = this.#options;
    const metadata = { name, namespace, labels: { [LABEL_APP_NAME]: APP_NAME } };
    const body = { apiVersion: 'v1', kind: 'Secret', metadata, data: Object.fromEntries(given) };
    await client.create(secrets, body, { signal });
  }
}
