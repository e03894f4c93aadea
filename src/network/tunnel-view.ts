import {
  HOME_REACH_REASONS,
  type HomeApiServerView,
  type HomeDnsView,
  type NetworkState,
  type PrefixView,
  type Tunnel,
  TUNNEL_CONDITIONS,
  TUNNEL_REASONS,
  tunnels,
} from '../api/tunnel.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Basics } from '../lib/basics.ts';
import { untilAborted } from '../lib/deadline.ts';
import { deepEqual } from '../lib/equality.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';
import { type DnsFacts, homeDnsIn } from './home-dns.ts';
import { ViewTable } from './views.ts';

interface TunnelViewOptions extends Basics {
  home: KubeClient;
  /** ClusterID of the provider; names its Tunnel. */
  provider: string;
  /** Of that Tunnel alone. */
  tunnels: Cache<Tunnel>;
}

/** Prefixes of home as the peer sees them, and of its pods as home does. */
interface TunnelPrefixes {
  exported: readonly PrefixView[];
  theirs: readonly PrefixView[];
}

/** What the answers follow from; everything else of a Tunnel changes far more often. */
interface Facts {
  state: NetworkState;
  /** Home has a gateway, so its addresses and theirs are to be told apart, but the peer has told none of its own. */
  isUntold: boolean;
  views: NonNullable<NonNullable<Tunnel['status']>['views']>;
  /** Without ClusterIPs: they are no addresses of endpoints. */
  seenAs: NonNullable<Tunnel['spec']['seenAs']>;
  /** Ours, in our addresses. */
  apiServer: Tunnel['spec']['apiServer'];
  /** The provider keeps our pods from it. */
  isApiServerForbidden: boolean;
  dns: Pick<DnsFacts, 'dns' | 'services' | 'seenAs' | 'theirs'>;
}

/**
 * A Tunnel that somebody has deleted is made again in a moment, and a peer that sets up its gateway anew tells its network
 * again. Without a network all Services would be removed over there, and come back under other addresses.
 */
export const OFF_AFTER_MS = 30_000;
const GONE: NetworkState = {
  kind: 'Down',
  reason: TUNNEL_REASONS.peerSilent,
  message: 'there is no tunnel any more, or the peer tells nothing of its network',
};
const OFF: Facts = {
  state: { kind: 'Off' },
  isUntold: false,
  views: [],
  seenAs: [],
  apiServer: undefined,
  isApiServerForbidden: false,
  dns: { dns: undefined, services: [], seenAs: [], theirs: [] },
};
const UNTOLD: Facts = { ...OFF, isUntold: true };

/**
 * Both sides make their Tunnels when they have agreed, and then tell each other of their networks. A node that took pods in between would
 * refuse them again in the next moment, while the tunnel is being set up.
 */
export const EXPECTED_MS = 10_000;
const EXPECTED: NetworkState = {
  kind: 'Down',
  reason: TUNNEL_REASONS.peerSilent,
  message: 'the provider has told nothing of its network yet',
};

/** A right that was just given, and an API server that starts, refuse for so long. */
const FORBIDDEN_MS = 5000;
const RETRY_MS = 500;

/** The network to one provider, as its Tunnel object tells. */
export class TunnelView implements Component {
  readonly name = 'network view';
  readonly #options: TunnelViewOptions;
  readonly #changed = new Listeners();
  /** Calls back after any of the answers may have changed. */
  readonly onChange: Listeners['add'] = this.#changed.add;
  readonly #abort = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #facts: Facts = OFF;
  /** By the Tunnel of now; in use at once, or after OFF_AFTER_MS where it takes something away. */
  #latest: Facts = OFF;
  #cancelOff: (() => void) | undefined;
  /** Foreign address -> as home sees it. */
  #views = new ViewTable([]);
  /** Of pods that are native over there. */
  #theirs = new ViewTable([]);
  /** Home address -> as the foreign cluster sees it. */
  #seenAs = new ViewTable([]);
  #homeDns = homeDnsOf(OFF);
  #prefixes: TunnelPrefixes = { exported: [], theirs: [] };

  constructor(options: TunnelViewOptions) {
    this.#options = options;
  }

  get state(): NetworkState {
    return this.#facts.state;
  }

  homeViewOf(foreignAddress: string): string | undefined {
    if (this.state.kind !== 'Off') return this.#views.translate(foreignAddress);
    // An untranslated address may be that of a pod of home: Services would send its traffic there.
    return this.#facts.isUntold ? undefined : foreignAddress;
  }

  foreignViewOf(homeAddress: string): string | undefined {
    return this.#seenAs.translate(homeAddress);
  }

  ownOf(foreignAddress: string): string | undefined {
    return this.#seenAs.translateBack(foreignAddress);
  }

  get prefixes(): TunnelPrefixes {
    return this.#prefixes;
  }

  get homeApiServer(): HomeApiServerView {
    return apiServerIn(this.#facts, this.#seenAs);
  }

  get homeDns(): HomeDnsView {
    return this.#homeDns;
  }

  isTheirs(homeAddress: string): boolean {
    return this.nativeOf(homeAddress) !== undefined;
  }

  nativeOf(homeAddress: string): string | undefined {
    return this.#theirs.translateBack(homeAddress);
  }

  /**
   * Returns when it is known whether there is a network: what would be done before that, by untranslated addresses,
   * would be wrong. Where Tunnels cannot be read at all there is none until they can.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { log, tunnels: cache } = this.#options;
    cache.onChange((_key, tunnel) => this.#learn(tunnel));
    const synced = cache.start(this.#abort.signal);
    this.#running = synced.catch(() => undefined);
    const refusal = await this.#refusal(signal);
    if (refusal === undefined) return untilAborted(synced, signal);
    log.info('Tunnels cannot be read: there is no network for now', { error: errorMessage(refusal) });
  }

  /** Why Tunnels cannot be read, as far as the API server is to be believed; undefined: they can, or it is not there. */
  async #refusal(signal: AbortSignal): Promise<unknown> {
    const { home, provider, clock } = this.#options;
    const until = clock.monotonic() + FORBIDDEN_MS;
    for (;;) {
      try {
        await home.list(tunnels, { fieldSelector: `metadata.name=${provider}`, signal });
        return undefined;
      } catch (error) {
        if (hasCode(error, 'Aborted')) throw error;
        if (hasCode(error, 'NotFound')) return error;
        // The informer tries on until it is answered.
        if (!hasCode(error, 'Forbidden')) return undefined;
        if (clock.monotonic() >= until) return error;
      }
      await clock.sleep(RETRY_MS, signal);
    }
  }

  async stop(): Promise<void> {
    this.#cancelOff?.();
    this.#abort.abort(new Error('stopped'));
    await this.#running;
    await this.#options.tunnels.stop();
  }

  #learn(tunnel: Tunnel | undefined): void {
    this.#latest = factsOf(tunnel, this.#facts.state);
    const expectedMs = this.#expectedMs(tunnel);
    if (expectedMs > 0) {
      this.#cancelOff?.();
      this.#cancelOff = this.#options.clock.after(expectedMs, () => this.#settle());
      this.#use({ ...this.#latest, state: EXPECTED });
      return;
    }
    if (!isLoss(this.#facts, this.#latest)) {
      this.#settle();
      return;
    }
    this.#cancelOff ??= this.#options.clock.after(OFF_AFTER_MS, () => this.#settle());
    if (this.#facts.state.kind !== 'Off') this.#use({ ...this.#facts, state: GONE });
  }

  /** For how long the peer's network is waited for. Not where there was one: that is kept as it was. */
  #expectedMs(tunnel: Tunnel | undefined): number {
    const { kind } = this.#facts.state;
    if (tunnel === undefined || tunnel.spec.peer !== undefined) return 0;
    if (kind !== 'Off' && this.#facts.state !== EXPECTED) return 0;
    const ageMs = this.#options.clock.now() - Date.parse(tunnel.metadata.creationTimestamp);
    // By another clock, which may be ahead. One that cannot be read is not waited for.
    return ageMs < EXPECTED_MS ? Math.min(EXPECTED_MS, EXPECTED_MS - ageMs) : 0;
  }

  #settle(): void {
    this.#cancelOff?.();
    this.#cancelOff = undefined;
    this.#use(this.#latest);
  }

  #use(facts: Facts): void {
    if (deepEqual(facts, this.#facts)) return;
    this.#facts = facts;
    const theirs = facts.views.filter(({ use }) => use === 'Pods');
    this.#prefixes = { exported: facts.seenAs, theirs };
    this.#views = new ViewTable(facts.views);
    this.#theirs = new ViewTable(theirs);
    this.#seenAs = new ViewTable(facts.seenAs);
    this.#homeDns = homeDnsOf(facts);
    this.#changed.tell();
  }
}

const homeDnsOf = ({ state, views, dns }: Facts): HomeDnsView =>
  homeDnsIn({ ...dns, state: state.kind, views });

/** A Tunnel whose peer has told nothing of a network joins nothing: a provider without a gateway remains usable. */
function factsOf(tunnel: Tunnel | undefined, before: NetworkState): Facts {
  if (tunnel === undefined) return OFF;
  const { spec, status } = tunnel;
  const { seenAs = [], services = [] } = spec;
  const dns = { dns: spec.dns, services, seenAs, theirs: spec.peer?.pods ?? [] };
  if (spec.peer === undefined) return { ...UNTOLD, dns };
  return {
    state: stateOf(tunnel, before),
    isUntold: false,
    views: status?.views ?? [],
    seenAs: seenAs.filter(({ prefix }) => !services.includes(prefix)),
    apiServer: spec.apiServer,
    isApiServerForbidden: spec.peer.forbidsHomeApiServer === true,
    dns,
  };
}

/** Where pods at the provider reach our API server through the tunnel, in their addresses. */
function apiServerIn(
  { state, apiServer, isApiServerForbidden }: Facts,
  seenAs: ViewTable,
): HomeApiServerView {
  if (state.kind === 'Off') {
    return {
      kind: 'None',
      reason: HOME_REACH_REASONS.noNetwork,
      message: 'no tunnel leads to the provider; --home-api-server of the role cluster can name another way',
    };
  }
  if (isApiServerForbidden) {
    return {
      kind: 'None',
      reason: HOME_REACH_REASONS.forbidden,
      message: 'the SharingPolicy of the provider says homeApiServer: Forbid',
    };
  }
  if (apiServer === undefined) {
    return {
      kind: 'None',
      reason: HOME_REACH_REASONS.notAllowed,
      message:
        'spec.network of the ForeignCluster says apiServer: None or access: None, or no API server is known',
    };
  }
  const address = seenAs.translate(apiServer.address);
  if (address !== undefined) return { kind: 'At', address, port: apiServer.port };
  return {
    kind: 'Unknown',
    reason: TUNNEL_REASONS.peerViews,
    message:
      'the provider has not told yet at which address its pods reach this API server: see kubectl describe tunnel',
  };
}

/** The network goes, or the Tunnel for whose sake addresses are hidden. */
const isLoss = (before: Facts, after: Facts): boolean =>
  after.state.kind === 'Off' && (before.state.kind !== 'Off' || (before.isUntold && !after.isUntold));

function stateOf({ status }: Tunnel, before: NetworkState): NetworkState {
  const ready = status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready);
  if (ready?.status === 'True') return { kind: 'Up' };
  // The host goes on without a gateway: what nobody knows is no reason to take pods out of Services.
  if (ready?.reason === TUNNEL_REASONS.noGateway) return before.kind === 'Off' ? { kind: 'Up' } : before;
  const { reason = TUNNEL_REASONS.starting, message = 'the gateway has not reported on the tunnel yet' } =
    ready ?? {};
  return { kind: 'Down', reason, message };
}

type TunnelViewsOptions = Omit<TunnelViewOptions, 'provider' | 'tunnels'> & {
  caches: Caches;
};

interface FollowedTunnel {
  view: TunnelView;
  isKnown: boolean;
}

/** The network to each provider whose Services are used here, as its Tunnel tells; followed from the first question on. */
export class TunnelViews implements Component {
  readonly name = 'networks of providers';
  readonly #options: TunnelViewsOptions;
  readonly #entries = new Map<string, FollowedTunnel>();
  readonly #changed = new Listeners<[clusterID: string]>();
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#changed.add;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: TunnelViewsOptions) {
    this.#options = options;
  }

  of(clusterID: string): ServiceNetwork | undefined {
    const entry = this.#entries.get(clusterID) ?? this.#begin(clusterID);
    return entry.isKnown ? networkOf(entry.view) : undefined;
  }

  forget(clusterID: string): void {
    const entry = this.#entries.get(clusterID);
    this.#entries.delete(clusterID);
    if (entry !== undefined) this.#follow(entry.view.stop());
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    for (const clusterID of this.#entries.keys()) this.forget(clusterID);
    await Promise.all(this.#running);
  }

  #begin(clusterID: string): FollowedTunnel {
    const { home, caches, clock, log } = this.#options;
    // All Tunnels are watched anyway in this process.
    const own = caches.of(tunnels, { only: ({ metadata }) => metadata.name === clusterID });
    const view = new TunnelView({ home, provider: clusterID, tunnels: own, clock, log });
    const entry: FollowedTunnel = { view, isKnown: false };
    const tell = (): void => {
      if (this.#entries.get(clusterID) === entry) this.#changed.tell(clusterID);
    };
    this.#entries.set(clusterID, entry);
    view.onChange(tell);
    const started = view.start(this.#abort.signal).then(
      () => {
        entry.isKnown = true;
        tell();
      },
      (error: unknown) => {
        log.debug('the network to a provider is not known', { peer: clusterID, error: errorMessage(error) });
      },
    );
    this.#follow(started);
    return entry;
  }

  #follow(work: Promise<unknown>): void {
    const followed = work.catch(() => undefined).finally(() => this.#running.delete(followed));
    this.#running.add(followed);
  }
}

/** What Services of a provider have to know of the network to it. */
interface ServiceNetwork {
  state: NetworkState;
  /** A pod of the provider itself, as we see it; undefined where it is none. */
  podAddress(theirs: string): string | undefined;
}

function networkOf(view: TunnelView): ServiceNetwork {
  const { state } = view;
  return {
    state,
    podAddress: (theirs) => {
      if (state.kind === 'Off') return undefined;
      const address = view.homeViewOf(theirs);
      // Not nodes of the provider, and not what it forwards of third clusters.
      return address !== undefined && view.isTheirs(address) ? address : undefined;
    },
  };
}
