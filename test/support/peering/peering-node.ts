/** One cluster as far as peering links go: identity, endpoint on loopback, registry, and sides that remember. */
import { Identity } from '../../../src/peering/identity/identity.ts';
import { issueLeaf } from '../../../src/peering/identity/certificate.ts';
import { presentedChain, verifyChain } from '../../../src/peering/identity/verify.ts';
import { LinkRegistry } from '../../../src/peering/link/registry.ts';
import type { LinkRegistryOptions } from '../../../src/peering/link/registry.ts';
import type { PeerIdentity } from '../../../src/peering/ports.ts';
import type { DocumentChanges, Documents } from '../../../src/peering/protocol/documents.ts';
import { systemRandom } from '../../../src/lib/backoff.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { TributaryError } from '../../../src/lib/errors.ts';
import { createLogger } from '../../../src/lib/log.ts';
import type { LogLevel } from '../../../src/lib/log.ts';
import { Variable } from '../../../src/lib/source.ts';
import type { KeyPair } from '../../../src/lib/source.ts';
import { PeeringEndpoint } from '../../../src/server/peering/endpoint.ts';
import type { PeeringEndpointOptions, PeeringHandlers } from '../../../src/server/peering/endpoint.ts';
import { eventually } from '../eventually.ts';

export interface PeeringNodeOptions {
  identity?: Identity;
  registry?: Partial<LinkRegistryOptions>;
  endpoint?: Partial<PeeringEndpointOptions>;
  handlers?: Partial<PeeringHandlers>;
  leaf?: KeyPair;
}

export interface LogLine {
  level: LogLevel;
  message: string;
  [field: string]: unknown;
}

const DAY_MS = 24 * 3_600_000;

export class PeeringNode {
  readonly identity: Identity;
  readonly certificate: Variable<KeyPair> = new Variable<KeyPair>({ certificate: '', key: '' });
  readonly registry: LinkRegistry;
  readonly endpoint: PeeringEndpoint;
  readonly logs: LogLine[] = [];
  /** What we say, by peer. */
  readonly says: Map<string, Documents> = new Map();
  /** What was heard, in order. */
  readonly heard: { from: string; changes: DocumentChanges }[] = [];
  readonly dialledBack: { from: string; stream: string }[] = [];
  /** Called with what was heard. */
  onHeard: (changes: DocumentChanges) => void = () => undefined;
  /** Throws the error that the peer gets. */
  refuse: (peer: PeerIdentity, changes: DocumentChanges) => void | Promise<void> = () => undefined;
  credential: (peer: PeerIdentity, signal: AbortSignal) => Promise<{ token: string; expires: string }> =
    async () => ({ token: 'token', expires: '2030-01-01T00:00:00Z' });
  readonly #leaf: KeyPair | undefined;

  constructor(options: PeeringNodeOptions = {}) {
    this.identity = options.identity ?? Identity.generate();
    this.#leaf = options.leaf;
    const log = createLogger({
      level: 'debug',
      now: () => Date.now(),
      write: (line) => this.logs.push(JSON.parse(line) as LogLine),
    });
    const received = async (peer: PeerIdentity, changes: DocumentChanges): Promise<void> => {
      await this.refuse(peer, changes);
      this.heard.push({ from: peer.clusterID, changes });
      this.onHeard(changes);
    };
    const part = (clusterID: string, kinds: (keyof Documents)[]): Documents => {
      const all = Object.entries(this.says.get(clusterID) ?? {});
      return Object.fromEntries(all.filter(([kind]) => kinds.includes(kind as keyof Documents)));
    };
    this.registry = new LinkRegistry({
      identity: this.identity,
      certificate: this.certificate,
      self: () => ({ clusterName: 'test', software: '0.0.0', endpoints: [this.address] }),
      networkKeys: () => [],
      lending: {
        documents: (clusterID) => part(clusterID, ['offer', 'grant']),
        received,
        credential: async (peer, signal) => this.credential(peer, signal),
        renew: async () => Promise.reject(new TributaryError('Forbidden', 'no fence was agreed on')),
      },
      borrowing: { documents: (clusterID) => part(clusterID, ['request', 'acceptance']), received },
      dialBack: async (peer, { stream }) => {
        this.dialledBack.push({ from: peer.clusterID, stream });
      },
      clock: systemClock,
      random: systemRandom,
      log,
      // All nodes of a test are on this host.
      allowLoopback: true,
      ...options.registry,
    });
    this.endpoint = new PeeringEndpoint({
      host: '127.0.0.1',
      port: 0,
      certificate: this.certificate,
      verify: (socket) => verifyChain(presentedChain(socket), Date.now()),
      handlers: {
        link: (socket, caller, from) => this.registry.accept(socket, caller, from),
        stream: (socket) => socket.close(),
        api: (socket) => socket.close(),
        ...options.handlers,
      },
      isKnown: () => true,
      clock: systemClock,
      log,
      ...options.endpoint,
    });
  }

  get id(): string {
    return this.identity.clusterID;
  }

  get address(): string {
    return `127.0.0.1:${this.endpoint.port ?? 1}`;
  }

  async renew(lifeMs: number = DAY_MS, nowMs: number = Date.now()): Promise<void> {
    this.certificate.set(await issueLeaf(this.identity, { nowMs, lifeMs }));
  }

  async start(): Promise<this> {
    const { signal } = new AbortController();
    if (this.#leaf === undefined) await this.renew();
    else this.certificate.set(this.#leaf);
    await this.endpoint.start(signal);
    await this.registry.start(signal);
    return this;
  }

  async stop(): Promise<void> {
    await this.registry.stop();
    await this.endpoint.stop();
  }

  dial(...others: PeeringNode[]): void {
    this.registry.setTargets(
      others.map((other) => ({ name: other.id, clusterID: other.id, endpoints: [other.address] })),
    );
  }

  say(to: PeeringNode, documents: Documents): void {
    this.says.set(to.id, documents);
    this.registry.publish(to.id);
  }

  /** The last word of that peer, by kind. */
  lastHeard(from: PeeringNode): DocumentChanges {
    return this.heard
      .filter((each) => each.from === from.id)
      .reduce((all, { changes }) => ({ ...all, ...changes }), {} as DocumentChanges);
  }

  warnings(): LogLine[] {
    return this.logs.filter(({ level }) => level === 'warn' || level === 'error');
  }
}

export async function linked(one: PeeringNode, other: PeeringNode): Promise<void> {
  await eventually(
    'both have the link',
    () => one.registry.view(other.id) !== undefined && other.registry.view(one.id) !== undefined,
  );
}
