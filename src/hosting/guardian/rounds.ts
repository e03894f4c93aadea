import type { EventReason } from '../../api/reasons/events.ts';
import { nodes } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import type { HostingParts } from '../parts.ts';
import { type Action, decide, type Decision, type NodeState, nodeStateOf } from './decide.ts';
import type { JournalEntry } from './journal-entry.ts';
import type { JournalStore } from './journal-store.ts';
import { type Outcome, PodWrites } from './pod-writes.ts';

/** Live reads of nodes, each once a round. A node is only read while a pod on it does not end. */
class NodeStates {
  readonly #client: KubeClient;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, NodeState>();

  constructor(client: KubeClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  async of(pod: Pod | undefined): Promise<NodeState> {
    const name = pod?.spec?.nodeName ?? '';
    if (name === '' || pod?.metadata.deletionTimestamp === undefined) return 'Answers';
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const options = { signal: this.#signal };
    const state = nodeStateOf(await this.#client.get(nodes, { name }, options).catch(ignoring('NotFound')));
    this.#known.set(name, state);
    return state;
  }
}

interface RoundsOptions extends Pick<HostingParts, 'client' | 'clock' | 'log' | 'events'> {
  namespace: KubeObject;
  store: JournalStore;
  pods: Pick<Informer<Pod>, 'get' | 'relist'>;
  isAway: () => boolean;
  isStillAway: (signal: AbortSignal) => Promise<boolean>;
  budget: TokenBucket;
  /** What was read of the logs of pods that have ended. */
  logsOf: (entry: JournalEntry) => string | undefined;
}

/** A cache learns of a write within milliseconds. After this time, the pod is read live again. */
const SETTLE_MS = 2000;
const REFUSED = { baseMs: 5000, capMs: 300_000 };
/** After an answer 5xx: it may concern that pod alone, for example a webhook that does not answer, or be over soon. */
const FAILED = { baseMs: 5000, capMs: 30_000 };
/** For how many pods in one round the API server may fail. With more, it counts as out of order. */
const MOST_FAILURES = 5;

interface Refusal {
  times: number;
  /** Monotonic milliseconds. */
  untilMs: number;
  message: string;
}

interface Round {
  signal: AbortSignal;
  /** Pods for which cache and live read disagree. */
  doubts: Set<string>;
  failures: number;
}

/** Goes through the pods of one tenant namespace, decides about each, and acts. */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #writes: PodWrites;
  /** By UID, when we first saw that it is being deleted; monotonic milliseconds. */
  readonly #terminating = new Map<string, number>();
  readonly #refusals = new Map<string, Refusal>();
  /** Pods for which cache and live read disagreed in the last round. */
  #doubted: ReadonlySet<string> = new Set();

  constructor(options: RoundsOptions) {
    this.#options = options;
    const { client, clock, namespace, isAway, logsOf } = options;
    this.#writes = new PodWrites({
      client,
      clock,
      namespace: namespace.metadata.name,
      mayWrite: isAway,
      logsOf,
    });
  }

  /** Why pods cannot be made anew, in the API server's words. */
  get refusal(): string | undefined {
    return this.#refusals.values().next().value?.message;
  }

  /** Returns after how many milliseconds the next round is due. */
  async round(signal: AbortSignal): Promise<number> {
    const { store, isAway } = this.#options;
    const nodes = new NodeStates(this.#options.client, signal);
    const round: Round = { signal, doubts: new Set<string>(), failures: 0 };
    let waitMs = Infinity;
    let isConfirmed = false;
    for (const entry of Array.from(store.entries.values())) {
      if (!isAway()) return Infinity;
      const decision = await this.#decide(entry, nodes);
      if (decision.do === 'Nothing') this.#refusals.delete(entry.name);
      if (decision.do === 'Wait') waitMs = Math.min(waitMs, decision.forMs ?? Infinity);
      if (decision.do === 'Nothing' || decision.do === 'Wait') continue;
      isConfirmed ||= await this.#options.isStillAway(signal);
      if (!isConfirmed) return Infinity;
      const turnMs = this.#turnMs(decision.do, entry);
      waitMs = Math.min(waitMs, turnMs > 0 ? turnMs : await this.#act(entry, decision, round));
    }
    this.#doubted = round.doubts;
    this.#prune();
    return waitMs;
  }

  /** Forgets pods that were replaced or are no longer kept. */
  #prune(): void {
    const { entries } = this.#options.store;
    const uids = new Set(entries.values().map(({ uid }) => uid));
    for (const uid of this.#terminating.keys()) if (!uids.has(uid)) this.#terminating.delete(uid);
    for (const name of this.#refusals.keys()) if (!entries.has(name)) this.#refusals.delete(name);
  }

  async #decide(entry: JournalEntry, nodes: NodeStates): Promise<Decision> {
    const { clock, namespace, pods } = this.#options;
    const pod = pods.get(`${namespace.metadata.name}/${entry.name}`);
    const nowMs = clock.monotonic();
    let terminatingForMs = 0;
    if (pod?.metadata.deletionTimestamp === undefined) this.#terminating.delete(entry.uid);
    else {
      const since = this.#terminating.get(entry.uid) ?? nowMs;
      this.#terminating.set(entry.uid, since);
      terminatingForMs = nowMs - since;
    }
    return decide({ entry, pod, node: await nodes.of(pod), terminatingForMs, nowMs: clock.now() });
  }

  /** How many milliseconds it has to wait for its turn. */
  #turnMs(action: Action, { name }: JournalEntry): number {
    const { clock, budget } = this.#options;
    const refusedMs = (this.#refusals.get(name)?.untilMs ?? -Infinity) - clock.monotonic();
    if (refusedMs > 0) return refusedMs;
    return action === 'Recreate' ? budget.waitMs(1) : 0;
  }

  /** Returns after how many milliseconds to look at the pod again. */
  async #act(
    entry: JournalEntry,
    { do: action, why }: { do: Action; why: string },
    round: Round,
  ): Promise<number> {
    const { store, pods, budget, log } = this.#options;
    const outcome = await this.#try(action, entry, round);
    if (outcome === 'Contradicted') {
      if (this.#doubted.has(entry.name)) pods.relist(`pod ${entry.name} is not as in the cache`);
      round.doubts.add(entry.name);
      return SETTLE_MS;
    }
    if (outcome === 'Stopped') return Infinity;
    if (typeof outcome === 'number') return outcome;
    this.#refusals.delete(entry.name);
    if (outcome !== 'Done') {
      store.put({ ...entry, result: outcome.result });
      return 1;
    }
    if (action === 'Recreate') budget.take(1);
    log.info('acted on a pod whose home is away', { pod: entry.name, action, why });
    if (action !== 'WriteResult') this.#say('Normal', EVENTS[action], `pod ${entry.name}: ${why}`);
    return SETTLE_MS;
  }

  /** A number: it was refused, and is tried again after so many milliseconds. */
  async #try(action: Action, entry: JournalEntry, round: Round): Promise<Outcome | number> {
    try {
      return await this.#writes.carryOut(action, entry, round.signal);
    } catch (error) {
      if (hasCode(error, 'NotFound', 'Conflict', 'AlreadyExists')) return 'Contradicted';
      if (hasCode(error, 'Forbidden', 'Invalid')) return this.#refused(entry.name, error, REFUSED);
      if (!hasCode(error, 'Unavailable') || ++round.failures > MOST_FAILURES) throw error;
      return this.#refused(entry.name, error, FAILED);
    }
  }

  #refused(name: string, error: unknown, { baseMs, capMs }: typeof REFUSED): number {
    const message = errorMessage(error);
    const times = (this.#refusals.get(name)?.times ?? 0) + 1;
    const waitMs = Math.min(capMs, baseMs * 2 ** Math.min(times - 1, 20));
    this.#refusals.set(name, { times, untilMs: this.#options.clock.monotonic() + waitMs, message });
    this.#say('Warning', 'PodNotKept', `pod ${name} cannot be kept while its home is away: ${message}`);
    return waitMs;
  }

  #say(type: 'Normal' | 'Warning', reason: EventReason, message: string): void {
    const { name, uid } = this.#options.namespace.metadata;
    const subject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, uid } };
    this.#options.events.event(subject, type, reason, message);
  }
}

const EVENTS: Readonly<Record<Exclude<Action, 'WriteResult'>, EventReason>> = {
  Recreate: 'PodRecreated',
  Clear: 'PodCleared',
  ForceDelete: 'PodForceDeleted',
  PutBack: 'ResultKept',
  GiveUp: 'PodGivenUp',
};
