import { getServers } from 'node:dns';

import { type SearchDomain, searchDomains } from '../../api/search-domain.ts';
import { type Candidate, CandidateSet, type CandidateSource } from '../candidates.ts';
import type { Cache } from '../../kube/cache.ts';
import { type ControllerBasics, Controller, type ReconcileResult } from '../../kube/controller.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import {
  BrowsedDomain,
  DEFAULT_PACE,
  domainName,
  domainStatus,
  type LookResult,
  type Pace,
} from './domain.ts';
import { parseServers, type ServerAddress } from './exchange.ts';
import { lookAt } from './look.ts';
import { Resolver } from './resolver.ts';

export interface WanSourceOptions extends ControllerBasics {
  /** Started before this one. */
  domains: Pick<Cache<SearchDomain>, 'get' | 'list' | 'onChange'>;
  /** This cluster. It is listed, too, but is no candidate. */
  ownClusterID: string;
  pace?: Pace;
  /** Makes the resolver of a SearchDomain; for tests. */
  resolver?: (servers: readonly ServerAddress[]) => Pick<Resolver, 'resolve'>;
}

const CONCURRENCY = 2;

/** Finds clusters that are listed in DNS zones, one zone for each SearchDomain, and writes the result into its status. */
export class WanSource implements CandidateSource {
  readonly name = 'wan-discovery';
  readonly source = 'WAN';
  readonly #options: WanSourceOptions;
  readonly #pace: Pace;
  readonly #controller: Controller;
  readonly #set: CandidateSet;
  readonly #domains = new Map<string, BrowsedDomain>();
  /** Results of the last look at each domain, for its status. */
  readonly #results = new Map<string, LookResult>();
  #unsubscribe: () => void = () => undefined;
  #cancelExpiry: () => void = () => undefined;

  constructor(options: WanSourceOptions) {
    const { clock, log, metrics, pace = DEFAULT_PACE } = options;
    this.#options = options;
    this.#pace = pace;
    this.#set = new CandidateSet(clock);
    this.#controller = new Controller({
      name: this.name,
      concurrency: CONCURRENCY,
      reconcile: async (name, { signal }) => this.#reconcile(name, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  start(signal: AbortSignal): void {
    const { domains } = this.#options;
    this.#unsubscribe = domains.onChange((name, current, previous) => {
      const isSame = current?.metadata.uid === previous?.metadata.uid;
      // Our own writes of its status are no reason for another look.
      if (!isSame || !deepEqual(current?.spec, previous?.spec)) this.#controller.add(name);
    });
    for (const { metadata } of domains.list()) this.#controller.add(metadata.name);
    this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#cancelExpiry();
    this.#controller.abandon(new TributaryError('Aborted', `${this.name} was stopped`));
    await this.#controller.stop();
    this.#cancelExpiry();
  }

  candidates(): Iterable<Candidate> {
    return this.#set.values();
  }

  onChange(listener: (clusterID: string) => void): () => void {
    return this.#set.onChange(listener);
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, domains } = this.#options;
    const object = domains.get(name);
    if (object === undefined) {
      this.#domains.delete(name);
      this.#results.delete(name);
      this.#publish();
      return {};
    }
    const domain = this.#domains.get(name) ?? new BrowsedDomain(name, this.#pace);
    this.#domains.set(name, domain);
    domain.asked(object.spec);
    const now = clock.monotonic();
    const failure = domain.dueInMs(now) > 0 ? undefined : await this.#look(object, domain, signal);
    this.#publish();
    await this.#writeStatus(name, signal);
    // It is asked again more and more rarely. What was known stays until its TTL has passed.
    if (failure !== undefined) throw failure;
    return { requeueAfterMs: domain.dueInMs(clock.monotonic()) };
  }

  /** Returns what went wrong. */
  async #look(
    { metadata: { name }, spec }: SearchDomain,
    domain: BrowsedDomain,
    signal: AbortSignal,
  ): Promise<TributaryError | undefined> {
    const { clock } = this.#options;
    try {
      const resolver = this.#resolver(spec);
      const look = await lookAt(domainName(spec), { resolver, clock, signal });
      const { intervalSeconds } = spec;
      domain.looked(look, {
        now: clock.monotonic(),
        ...(intervalSeconds !== undefined && { intervalMs: Math.max(1, intervalSeconds) * 1000 }),
      });
      this.#results.set(name, { at: clock.now(), look });
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!hasCode(error, 'Unavailable', 'Unreachable', 'Invalid')) throw error;
      const failure = errorMessage(error);
      this.#results.set(name, { at: clock.now(), failure, isInvalid: hasCode(error, 'Invalid') });
      return error as TributaryError;
    }
  }

  #resolver({ servers = [] }: SearchDomain['spec']): Pick<Resolver, 'resolve'> {
    const { clock, resolver } = this.#options;
    const addresses = parseServers(servers.length === 0 ? getServers() : servers);
    return resolver?.(addresses) ?? new Resolver({ servers: addresses, clock });
  }

  /** Writes without the version: nobody else writes this status, and our copy of the object may be older. */
  async #writeStatus(name: string, signal: AbortSignal): Promise<void> {
    const { client, clock, domains } = this.#options;
    const object = domains.get(name);
    const result = this.#results.get(name);
    if (object === undefined || result === undefined || object.metadata.deletionTimestamp !== undefined)
      return;
    const clusters = [...(this.#domains.get(name)?.candidates(clock.monotonic()).keys() ?? [])];
    const status = domainStatus(object, result, clusters);
    if (deepEqual(status, object.status)) return;
    const patch = { type: 'merge', body: { status } } as const;
    await client.patch(searchDomains, { name }, patch, { subresource: 'status', signal });
  }

  /** Joins what all domains list. Where two list a cluster, the first domain by name counts. */
  #publish(): void {
    const { clock, domains, ownClusterID } = this.#options;
    const now = clock.monotonic();
    const all = new Map<string, Candidate>();
    let expiry = Infinity;
    for (const name of [...this.#domains.keys()].toSorted()) {
      const domain = this.#domains.get(name);
      expiry = Math.min(expiry, domain?.nextExpiry(now) ?? Infinity);
      const outgoing = domains.get(name)?.spec.outgoing;
      for (const [clusterID, candidate] of domain?.candidates(now) ?? []) {
        if (clusterID === ownClusterID || all.has(clusterID)) continue;
        all.set(clusterID, { ...candidate, ...(outgoing !== undefined && { outgoing }) });
      }
    }
    this.#set.replace(all);
    this.#cancelExpiry();
    this.#cancelExpiry = Number.isFinite(expiry)
      ? clock.after(expiry - now, () => this.#publish())
      : () => undefined;
  }
}
