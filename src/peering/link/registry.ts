import type { WebSocket } from 'ws';
import type { Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { TributaryError } from '../../lib/errors.ts';
import { onGridMs } from '../../lib/grid.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { LogFields } from '../../lib/log.ts';
import { isDialable } from '../../lib/never-dialled.ts';
import { nameOfProxy, type ProxySettings } from '../../lib/proxy.ts';
import { QuietLog } from '../../lib/quiet-log.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import type {
  BorrowingSide,
  DialProblem,
  DialTarget,
  LendingSide,
  LinkView,
  NetworkSide,
  OwnIdentity,
  PeerIdentity,
  PeerLinks,
  ServicesSide,
} from '../ports.ts';
import type { CallMethod, Calls } from '../protocol/documents.ts';
import { callHandlers, type CallHandlers, type DialBack } from './answers.ts';
import { WebSocketChannel } from './channel.ts';
import type { Dialler } from './contest.ts';
import { DocumentPaces } from './document-paces.ts';
import { DEFAULT_DIAL_TIMES, type DialTimes, type LinkOutcome } from './dial-loop.ts';
import { Dialer, type Secured } from './dialer.ts';
import { type HelloOptions, helloTo, type NetworkKey, provedKeys, type SelfDescription } from './hello.ts';
import { CLOSE, DEFAULT_TIMES, Link, type LinkEnd, type LinkEvents, type LinkTimes } from './link.ts';
import { PeerSlot } from './peer-slot.ts';
import { Targets } from './targets.ts';
import type { Rates } from './throttle.ts';

export type { NetworkKey, SelfDescription };

export interface LinkRegistryOptions extends HelloOptions, Basics {
  identity: OwnIdentity;
  /** Leaf and identity certificate, as from PeeringCertificate. */
  certificate: Source<KeyPair>;
  lending: LendingSide;
  borrowing: BorrowingSide;
  /** Absent: we say nothing of the network, and ignore what peers say of it. */
  network?: NetworkSide;
  /** Absent: we offer no Services, and ignore those that peers offer. */
  services?: ServicesSide;
  /** Call `dial` of a consumer: open `/v1/streams/<stream>` there and join it to our API server. */
  dialBack: DialBack;
  random: Random;
  times?: Partial<LinkTimes & DialTimes>;
  /** How often links that nobody may need are looked at, while there are such; the second look closes them. Default 5 s. */
  reapMs?: number;
  rates?: Rates;
  /** Whether peers may say that they are on our own host: it is so where all runs on one. */
  allowLoopback?: boolean;
  /** The way out to peers; default: directly. */
  proxies?: ProxySettings;
}

/** Whose link, or which target, has changed. */
type LinkKey = { clusterID?: string; target?: string };

export const LINK_PATH = '/v1/link';
const REAP_MS = 5_000;

/**
 * All links to peers, at most one for each; dials those that are to be dialled. Start it when lending, borrowing
 * and the network know what they have to say: a document that is missing takes back what was granted.
 */
export class LinkRegistry implements PeerLinks, Component {
  readonly name = 'peering links';
  readonly #options: LinkRegistryOptions;
  readonly #times: LinkTimes & DialTimes;
  readonly #quiet: QuietLog;
  readonly #dialer: Dialer;
  readonly #handlers: CallHandlers;
  readonly #targets: Targets;
  readonly #slots = new Map<string, PeerSlot>();
  readonly #paces: DocumentPaces;
  readonly #listeners = new Listeners<[key: LinkKey]>();
  readonly onChange: Listeners<[key: LinkKey]>['add'] = this.#listeners.add;
  /** Resolved when it is known what became of a link that we have dialled. */
  readonly #outcomes = new Map<Link, (outcome: LinkOutcome) => void>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  /** Until they have ended, greeted or not. */
  readonly #open = new Set<Link>();
  readonly #drained = Promise.withResolvers<void>();
  /** While a look is due. */
  #cancelReap: (() => void) | undefined;
  #unneeded = new Set<Link>();

  constructor(options: LinkRegistryOptions) {
    this.#options = options;
    const { clock, log, certificate, lending, dialBack, random, times } = options;
    this.#times = { ...DEFAULT_TIMES, ...DEFAULT_DIAL_TIMES, ...times };
    this.#quiet = new QuietLog({ log, clock });
    const { allowLoopback = false, proxies } = options;
    this.#dialer = new Dialer({
      certificate,
      clock,
      connectMs: this.#times.connectMs,
      ...(proxies && { proxies }),
      mayDial: (endpoint, address) =>
        isDialable(address, { allowLoopback }) || this.#targets.isChosenHere(endpoint),
    });
    this.#handlers = callHandlers(lending, dialBack);
    this.#paces = new DocumentPaces(clock);
    this.#targets = new Targets({
      own: () => options.identity.clusterID,
      dialer: this.#dialer,
      adopt: async (secured, endpoint, signal) => this.#dialled(secured, endpoint, signal),
      link: (clusterID) => this.#slots.get(clusterID)?.active,
      changed: (target) => this.#listeners.tell({ target }),
      clock,
      random,
      quiet: this.#quiet,
      times: this.#times,
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#state = 'running';
    const { log, proxies } = this.#options;
    if (proxies) log.info('peers are dialled through a proxy', { proxy: nameOfProxy(proxies.proxy) });
    this.#targets.start();
  }

  async stop(): Promise<void> {
    this.#state = 'stopped';
    this.#cancelReap?.();
    const slots = [...this.#slots.values()];
    for (const slot of slots) slot.close(CLOSE.stopping, 'the peer stops');
    await Promise.all([this.#targets.stop(), ...slots.map(async (slot) => slot.stop())]);
    if (this.#open.size > 0) await this.#drained.promise;
  }

  /** Opens streams beside the links. */
  get dialer(): Dialer {
    return this.#dialer;
  }

  /** Handler of `/v1/link` at the endpoint; `from` is the address that the peer came from. */
  accept(socket: WebSocket, peer: PeerIdentity, from: string): void {
    this.#adopt(socket, peer, { dialledBy: 'Them', endpoint: from });
  }

  /** Where that peer may be reached, the most promising first. */
  endpoints(clusterID: string): readonly string[] {
    const active = this.#slots.get(clusterID)?.active;
    const dialled = active?.dialledBy === 'Us' ? [active.endpoint] : [];
    const said = active?.hello?.endpoints ?? [];
    return [...new Set([...dialled, ...this.#targets.endpoints(clusterID), ...said])];
  }

  /** What we say of ourselves, or the network keys, may have changed. */
  describe(): void {
    for (const slot of this.#slots.values()) {
      slot.describe();
      if (slot.active !== undefined) this.#listeners.tell({ clusterID: slot.active.peer.clusterID });
    }
  }

  view(clusterID: string): LinkView | undefined {
    const link = this.#slots.get(clusterID)?.active;
    return link && { ...link.view(), networkKeys: this.#provedBy(link) };
  }

  *views(): Iterable<LinkView> {
    for (const clusterID of this.#slots.keys()) {
      const view = this.view(clusterID);
      if (view !== undefined) yield view;
    }
  }

  problem(targetName: string): DialProblem | undefined {
    return this.#targets.problem(targetName);
  }

  setTargets(targets: readonly DialTarget[]): void {
    this.#targets.set(targets);
    this.#scheduleReap();
  }

  publish(clusterID: string): void {
    this.#slots.get(clusterID)?.active?.publish();
  }

  async call<Method extends CallMethod>(
    clusterID: string,
    method: Method,
    params: Calls[Method]['params'],
    signal?: AbortSignal,
  ): Promise<Calls[Method]['result']> {
    const link = this.#slots.get(clusterID)?.active;
    if (link === undefined) throw new TributaryError('Unreachable', `there is no link to ${clusterID}`);
    return link.call(method, params, signal);
  }

  #provedBy(link: Link): string[] {
    const [own, peer] = [this.#options.identity.clusterID, link.peer.clusterID];
    return provedKeys(link.hello?.networkProofs ?? [], this.#options.networkKeys(), { own, peer });
  }

  async #dialled(secured: Secured, endpoint: string, signal: AbortSignal): Promise<LinkOutcome> {
    const { promise, resolve } = Promise.withResolvers<LinkOutcome>();
    await this.#dialer.upgrade(secured, { endpoint, path: LINK_PATH, signal }, (socket) => {
      const link = this.#adopt(socket, secured.peer, { dialledBy: 'Us', endpoint });
      if (link !== undefined) this.#outcomes.set(link, resolve);
      else resolve({ reason: 'no place', code: CLOSE.tooMany, incompatible: false, fault: false });
    });
    return promise;
  }

  #adopt(
    socket: WebSocket,
    peer: PeerIdentity,
    { dialledBy, endpoint }: { dialledBy: Dialler; endpoint: string },
  ): Link | undefined {
    const { identity, lending, borrowing, network, services, clock, rates } = this.#options;
    const own = identity.clusterID;
    const { clusterID } = peer;
    const slot = this.#slot(peer);
    const refusal = this.#refusal(clusterID, slot);
    if (refusal !== undefined) {
      socket.close(...refusal);
      this.#forget(slot);
      return undefined;
    }
    const link = new Link({
      channel: new WebSocketChannel(socket, clock),
      peer,
      dialledBy,
      endpoint,
      hello: () => helloTo(clusterID, own, this.#options),
      documents: () => ({
        ...lending.documents(clusterID),
        ...borrowing.documents(clusterID),
        ...network?.documents(clusterID),
        ...services?.documents(clusterID),
      }),
      handlers: this.#handlers,
      events: this.#events(slot),
      clock,
      log: this.#quiet.logger(clusterID, 'link', { peer: clusterID }),
      times: this.#times,
      ...(rates && { rates }),
    });
    this.#open.add(link);
    slot.opened(link);
    link.start();
    return link;
  }

  #refusal(clusterID: string, slot: PeerSlot): [code: number, reason: string] | undefined {
    if (this.#state !== 'running') return [CLOSE.stopping, 'not running'];
    if (clusterID === this.#options.identity.clusterID)
      return [CLOSE.ourselves, 'that is this cluster itself'];
    return slot.isFull ? [CLOSE.tooMany, 'too many links of this peer at once'] : undefined;
  }

  #slot(peer: PeerIdentity): PeerSlot {
    const { clusterID } = peer;
    const found = this.#slots.get(clusterID);
    if (found !== undefined) return found;
    const log = this.#quiet.logger(clusterID, 'link', { peer: clusterID });
    const slot = new PeerSlot({
      peer,
      own: this.#options.identity.clusterID,
      delivery: { ...this.#options, paces: this.#paces, log },
      changed: () => this.#changed(slot),
    });
    this.#slots.set(clusterID, slot);
    return slot;
  }

  #events(slot: PeerSlot): LinkEvents {
    return {
      greeted: (link) => {
        this.#outcomes.get(link)?.('greeted');
        slot.greeted(link);
        if (link === slot.active) this.#note(link, 'linked to a peer', {});
      },
      described: (link) => {
        if (link === slot.active) this.#changed(slot);
      },
      documents: (link, changes, acknowledge) => slot.received(link, changes, acknowledge),
      ended: (link, end) => {
        if (link === slot.active) this.#note(link, 'link to a peer ended', { reason: end.reason });
        this.#ended(link, end);
        slot.ended(link);
        this.#forget(slot);
      },
    };
  }

  #ended(link: Link, end: LinkEnd): void {
    const { clusterID } = link.peer;
    this.#outcomes.get(link)?.(end);
    this.#outcomes.delete(link);
    this.#open.delete(link);
    if (this.#state === 'stopped' && this.#open.size === 0) this.#drained.resolve();
    if (end.incompatible) this.#targets.refused(clusterID, end);
    if (!end.fault) return;
    this.#quiet.warn(clusterID, 'link ended: the peer broke the protocol', {
      peer: clusterID,
      endpoint: link.endpoint,
      error: end.reason,
    });
  }

  /** Logs every change of a link that we want; strangers, which may come and go very often, are logged less often. */
  #note({ peer: { clusterID }, dialledBy, endpoint }: Link, message: string, more: LogFields): void {
    const fields = { peer: clusterID, dialledBy, endpoint, ...more };
    if (this.#targets.wants(clusterID)) this.#options.log.info(message, fields);
    else this.#quiet.info(clusterID, message, fields);
  }

  /** Another link is in use, or none. */
  #changed(slot: PeerSlot): void {
    const { clusterID } = slot.peer;
    this.#targets.wake(clusterID);
    this.#listeners.tell({ clusterID });
    this.#forget(slot);
    this.#scheduleReap();
  }

  #forget(slot: PeerSlot): void {
    if (slot.isEmpty) this.#slots.delete(slot.peer.clusterID);
  }

  /** Links that we have dialled and nobody wants for themselves. */
  #unwanted(): Link[] {
    return [...this.#slots.values()].flatMap(({ active, peer }) =>
      active?.dialledBy === 'Us' && !this.#targets.wants(peer.clusterID) ? [active] : [],
    );
  }

  /** Ends such links once neither side wants anything: nothing tells of that, so it is looked at while there are some. */
  #scheduleReap(): void {
    const { clock, reapMs = REAP_MS } = this.#options;
    if (this.#cancelReap !== undefined || this.#state !== 'running') return;
    if (this.#unwanted().length === 0) return;
    this.#cancelReap = clock.after(onGridMs(clock.monotonic(), reapMs, reapMs / 2), () => {
      this.#cancelReap = undefined;
      const idle = this.#unwanted().filter(({ isIdle }) => isIdle);
      for (const link of idle)
        if (this.#unneeded.has(link)) link.close(CLOSE.unwanted, 'not wanted any more');
      this.#unneeded = new Set(idle);
      this.#scheduleReap();
    });
  }
}
