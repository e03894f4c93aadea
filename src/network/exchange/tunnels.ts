import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { ANNOTATION_ROTATE } from '../../api/names.ts';
import type { OwnNetwork } from '../../api/own-network.ts';
import { type Tunnel, tunnels, type TunnelSpec, type TunnelStatus } from '../../api/tunnel.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { mergePatchOf } from '../../lib/merge-patch.ts';
import { ownAddressesOf } from '../ipam/own-addresses.ts';
import type { RefusedPrefix } from '../ipam/wanted-prefixes.ts';
import type { AddressBook } from './address-book.ts';
import { exportedTo } from './document.ts';
import type { PresharedKeys } from './preshared.ts';
import {
  decideSpec,
  type Heard,
  type NetworkPeer,
  serviceRangesFor,
  type TunnelServices,
  wantedPrefixes,
} from './tunnel-spec.ts';

interface TunnelReconcilerOptions {
  client: KubeClient;
  log: Logger;
  tunnel: (clusterID: string) => Tunnel | undefined;
  peer: (clusterID: string) => NetworkPeer | undefined;
  /** Whether there is such a peer, asked of the API server: before anything that cannot be undone. */
  isStillPeered: (clusterID: string, signal: AbortSignal) => Promise<boolean>;
  heard: (clusterID: string) => Heard;
  /** Called when nothing more has to be done for this cluster. */
  forgotten: (clusterID: string) => void;
  /** Our network as published. Undefined while there is no gateway. */
  own: () => { network: OwnNetwork; publicKey: string } | undefined;
  /** Our ClusterID. */
  ownID: string;
  /** Called when what that cluster announces may be taken now. */
  again: (clusterID: string) => void;
  /** What that peer is told as prefixes that we forward. */
  transit: (peer: NetworkPeer) => string[];
  services?: (clusterID: string) => TunnelServices;
  /** Whether our policy keeps that peer's pods here from its API server. */
  forbidsHomeApiServer: (clusterID: string) => boolean;
  book: Pick<AddressBook, 'assign' | 'views' | 'release' | 'renew'>;
  preshared: Pick<PresharedKeys, 'reconcile'>;
  metrics?: ExchangeMetrics;
}

/** Where the exchange counts; see metrics.ts. */
export interface ExchangeMetrics {
  /** Counts of one peer's prefixes. Undefined when the peer is gone. */
  prefixes(clusterID: string, counts: { seen: number; refused: number } | undefined): void;
}

/** Makes the Tunnel of one peer as it should be: its spec, then its views, then its preshared key. */
export class TunnelReconciler {
  readonly #options: TunnelReconcilerOptions;
  readonly #claims: KeyClaims;
  readonly #complaints = new Map<string, string>();

  constructor(options: TunnelReconcilerOptions) {
    this.#options = options;
    this.#claims = new KeyClaims(options.again);
  }

  /** Must come before the first reconcile. */
  restore(stored: Iterable<Tunnel>): void {
    for (const { metadata, spec } of stored) {
      if (spec.peer !== undefined) this.#claims.claim(metadata.name, spec.peer.publicKey);
    }
  }

  async reconcile(clusterID: string, { signal }: { signal: AbortSignal }): Promise<void> {
    const peer = this.#options.peer(clusterID);
    const tunnel = this.#options.tunnel(clusterID);
    if (peer === undefined) return this.#end(clusterID, tunnel, signal);
    const own = this.#options.own();
    if (own === undefined) return;
    const spec = this.#decide(peer, tunnel, own);
    if (tunnel === undefined) return this.#create(clusterID, spec, signal);
    // Somebody has deleted the Tunnel, and it waits for a finalizer of theirs. It is made again when it is gone.
    if (tunnel.metadata.deletionTimestamp !== undefined) return;
    await this.#patchSpec(tunnel, spec, signal);
    await this.#assign(tunnel, spec, signal);
    const renew = tunnel.metadata.annotations?.[ANNOTATION_ROTATE];
    const heard = this.#options.heard(clusterID);
    const theirs = heard === undefined ? undefined : (heard?.presharedHalf ?? null);
    const wish = { wanted: true, theirs, ...(renew !== undefined && { renew }) };
    await this.#options.preshared.reconcile(clusterID, wish, signal);
  }

  #decide(
    peer: NetworkPeer,
    tunnel: Tunnel | undefined,
    own: { network: OwnNetwork; publicKey: string },
  ): TunnelSpec {
    const { heard, transit, services, forbidsHomeApiServer } = this.#options;
    const { clusterID } = peer;
    const ranges = serviceRangesFor(peer, own.network);
    const exported = exportedTo(own.network, transit(peer));
    const { spec, refused } = decideSpec({
      peer,
      heard: heard(clusterID),
      exported,
      ranges,
      pods: exported.filter((prefix) => !ranges.includes(prefix) && prefix !== own.network.external),
      ...(tunnel && { current: tunnel.spec }),
      ...(services && { services: services(clusterID) }),
      ...(own.network.apiServer && { apiServer: own.network.apiServer }),
      forbidsHomeApiServer: forbidsHomeApiServer(clusterID),
    });
    const isSilent = heard(clusterID) === undefined && spec.peer === undefined;
    const keyOf = isSilent
      ? tunnel?.spec.keyOf
      : this.#ownerOf(spec.peer?.publicKey, clusterID, own.publicKey);
    this.#complain(clusterID, { keyOf, refused });
    if (keyOf === undefined) return spec;
    const { peer: _refused, ...rest } = spec;
    return { ...rest, keyOf };
  }

  /** Whose key the peer announces, where it is not its own. */
  #ownerOf(key: string | undefined, clusterID: string, ownKey: string): string | undefined {
    if (key !== undefined && key !== ownKey) {
      const owner = this.#claims.claim(clusterID, key);
      return owner === clusterID ? undefined : owner;
    }
    this.#claims.release(clusterID);
    return key === undefined ? undefined : this.#options.ownID;
  }

  #complain(
    clusterID: string,
    { keyOf, refused }: { keyOf: string | undefined; refused: readonly RefusedPrefix[] },
  ): void {
    const [first] = refused;
    const text =
      keyOf === undefined
        ? first && `it sees us in a way that cannot be: ${first.message}`
        : `its WireGuard key belongs to the cluster ${keyOf}: it gets no tunnel`;
    if (text === this.#complaints.get(clusterID)) return;
    if (text === undefined) {
      this.#complaints.delete(clusterID);
      return;
    }
    this.#complaints.set(clusterID, text);
    // For a moment after each change of what we export, the peer still names the prefixes of before.
    const level = keyOf === undefined ? 'info' : 'warn';
    this.#options.log[level]('a peer says of the network what cannot be', { peer: clusterID, problem: text });
  }

  async #create(clusterID: string, spec: TunnelSpec, signal: AbortSignal): Promise<void> {
    const { client, log, book } = this.#options;
    book.renew(clusterID, ownAddressesOf(spec.ownAddresses));
    const metadata = { name: clusterID, labels: { [LABEL_APP_NAME]: APP_NAME } };
    const body = { apiVersion: 'tributary.dev/v1alpha1', kind: 'Tunnel', metadata, spec };
    // AlreadyExists: the cache will show it.
    await client.create(tunnels, body, { signal }).catch(ignoring('AlreadyExists'));
    log.info('made a tunnel', { peer: clusterID });
  }

  async #patchSpec(tunnel: Tunnel, spec: TunnelSpec, signal: AbortSignal): Promise<void> {
    const changes = mergePatchOf(tunnel.spec, spec);
    if (changes === undefined) return;
    const { name, uid } = tunnel.metadata;
    const body = { metadata: { uid }, spec: changes };
    await this.#options.client.patch(tunnels, { name }, { type: 'merge', body }, { signal });
  }

  /** The peer is told of views only when they are stored. So a view that is assigned here and lost with this process was never used. */
  async #assign(tunnel: Tunnel, spec: TunnelSpec, signal: AbortSignal): Promise<void> {
    const { client, book, metrics } = this.#options;
    const { name, uid } = tunnel.metadata;
    const { status = {} } = tunnel;
    const wanted = wantedPrefixes(spec.peer);
    const due: Required<Pick<TunnelStatus, 'views' | 'refused'>> =
      wanted === undefined
        ? { views: book.views(name), refused: status.refused ?? [] }
        : book.assign(name, wanted, ownAddressesOf(spec.ownAddresses));
    metrics?.prefixes(name, { seen: due.views.length, refused: due.refused.length });
    if (deepEqual({ views: status.views ?? [], refused: status.refused ?? [] }, due)) return;
    const body = { metadata: { uid }, status: due };
    const options = { subresource: 'status', signal };
    await client.patch(tunnels, { name }, { type: 'merge', body }, options);
  }

  /** Views become free only when the Tunnel is gone, so that no two peers ever have the same. */
  async #end(clusterID: string, tunnel: Tunnel | undefined, signal: AbortSignal): Promise<void> {
    const { client, log, book, preshared, metrics, isStillPeered, forgotten } = this.#options;
    if (tunnel !== undefined) {
      if (tunnel.metadata.deletionTimestamp !== undefined) return;
      if (await isStillPeered(clusterID, signal)) return;
      const { name, uid } = tunnel.metadata;
      await client.delete(tunnels, { name }, { uid, signal }).catch(ignoring('NotFound'));
      log.info('removed a tunnel', { peer: clusterID });
      return;
    }
    await preshared.reconcile(clusterID, { wanted: false, theirs: undefined }, signal);
    // The peer may have come back while we waited.
    if (this.#options.peer(clusterID) !== undefined || this.#options.tunnel(clusterID) !== undefined) return;
    book.release(clusterID);
    this.#claims.release(clusterID);
    this.#complaints.delete(clusterID);
    metrics?.prefixes(clusterID, undefined);
    forgotten(clusterID);
  }
}

/**
 * Which cluster has which WireGuard key. WireGuard knows peers by their keys alone: a peer that announces the key of another, or ours,
 * would take its addresses away. The cluster that announced a key first has it.
 */
export class KeyClaims {
  readonly #owners = new Map<string, string>();
  readonly #keys = new Map<string, string>();
  /** Keys of others that clusters announce. */
  readonly #refused = new Map<string, string>();
  readonly #freed: (clusterID: string) => void;

  /** `freed` is called for each cluster that was refused a key which has no owner any more. */
  constructor(freed: (clusterID: string) => void) {
    this.#freed = freed;
  }

  /** Returns the ClusterID of the key's owner: the given one, unless it is another. The key that it had before becomes free. */
  claim(clusterID: string, publicKey: string): string {
    const owner = this.#owners.get(publicKey) ?? clusterID;
    if (owner !== clusterID) {
      this.#refused.set(clusterID, publicKey);
      return owner;
    }
    if (this.#keys.get(clusterID) !== publicKey) this.release(clusterID);
    this.#owners.set(publicKey, clusterID);
    this.#keys.set(clusterID, publicKey);
    this.#refused.delete(clusterID);
    return owner;
  }

  release(clusterID: string): void {
    this.#refused.delete(clusterID);
    const key = this.#keys.get(clusterID);
    if (key === undefined) return;
    this.#owners.delete(key);
    this.#keys.delete(clusterID);
    for (const [other, wanted] of this.#refused) if (wanted === key) this.#freed(other);
  }
}
