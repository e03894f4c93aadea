import { secrets } from '../../api/resources.ts';
import { peerOf, PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { KubeObject, Secret } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { isFenced } from '../annotations.ts';
import type { HostingParts } from '../parts.ts';
import { type ByteRate, PeerWrites } from '../peer-writes.ts';
import { deleteJournals } from './journal-store.ts';
import { LABEL_JOURNAL } from './journal.ts';
import { Mutex } from './mutex.ts';
import { PodMemory } from './pod-memory.ts';
import { Presence } from './presence.ts';
import { homeCondition, Reporter } from './report.ts';
import { KeptLogs } from './result-logs.ts';
import { TenantWatch } from './tenant-watch.ts';

const BY_PEER = 'peer';
const CONCURRENCY = 4;
/** How often it is reported what is done for a home that is away: that changes with every pod. */
const REPORT_MS = 2000;
/**
 * How many pods of one peer are made anew at once, and then each second. The pace is per peer, so that none waits for another
 * whose pods are lost again and again. Many lost pods are more likely a wiped namespace or a restored backup than a lost node,
 * and a pause gives a person time to look.
 */
const PACE = { burst: 20, perSecond: 0.5 };

/**
 * A change of one small pod makes a Secret of up to 700 KiB be stored whole. The journal of a peer is up to 64 MiB of pods, mostly
 * packed to a fifth: it is stored at once when its home goes away, and then as its pods change.
 */
const JOURNAL_WRITES: ByteRate = { burstMiB: 24, mibPerMinute: 2 };

interface GuardianOptions extends HostingParts {
  /** How many bytes of memory the pods of one peer may take. */
  heldBytes?: number;
}

/** What the namespaces of one peer share. */
interface Shared {
  budget: TokenBucket;
  memory: PodMemory;
  keptLogs: KeptLogs;
  listMutex: Mutex;
}

/**
 * Keeps the pods of peers whose home is away. While a home renews its Lease, only that Lease, the metadata of its namespaces and
 * the names of its journals are read for it; while it is late, its pods are watched, too.
 */
export class Guardian {
  readonly #options: GuardianOptions;
  readonly #presence: Presence;
  readonly #journals: Cache<Secret>;
  readonly #reporter: Reporter;
  readonly #controller: Controller;
  readonly #shared = new Map<string, Shared>();
  readonly #bulkMutex = new Mutex();
  /** It outlives absences, so that a home that comes and goes begins no new budget. */
  readonly #writes: PeerWrites;
  /** By namespace. */
  readonly #watches = new Map<string, { peer: string; watch: TenantWatch }>();
  /** Reconciliations that are under way begin no watch any more. */
  #isStopping = false;

  constructor(options: GuardianOptions) {
    this.#options = options;
    const { caches, clock, metrics, random } = options;
    const log = options.log.named('guardian');
    this.#writes = new PeerWrites({ clock, ...JOURNAL_WRITES });
    this.#presence = new Presence(options);
    this.#reporter = new Reporter({ ...options, log });
    this.#journals = caches.of(secrets, {
      list: { namespace: PEERS_NAMESPACE, labelSelector: LABEL_JOURNAL, metadataOnly: true },
      indexes: { [BY_PEER]: (journal) => [peerOf(journal)] },
      name: 'cache of journals',
    });
    this.#controller = new Controller({
      clock,
      log,
      ...(random && { random }),
      name: 'guardian',
      concurrency: CONCURRENCY,
      reconcile: async (peer, { signal }) => this.#reconcile(peer, signal),
      ...(metrics && { metrics }),
    });
  }

  /** In the order of their start. */
  components(): Component[] {
    return [
      this.#journals,
      this.#triggers(),
      ...this.#presence.components(),
      this.#controller,
      this.#watching(),
    ];
  }

  /** Starts before presence, which tells only of changes. */
  #triggers(): Component {
    return subscribing('guardian triggers', () => [
      this.#presence.onChange((peer) => this.#controller.add(peer)),
      this.#journals.onChange((_key, current) => {
        if (current !== undefined) this.#controller.add(peerOf(current));
      }),
    ]);
  }

  /** Stopped first: no write may follow when another guardian leads. */
  #watching(): Component {
    return {
      name: 'guardian watches',
      stop: async () => {
        this.#isStopping = true;
        await Promise.all([...this.#watches.values()].map(async ({ watch }) => watch.stop()));
      },
    };
  }

  async #reconcile(peer: string, signal: AbortSignal): Promise<ReconcileResult> {
    const tenants = this.#presence.namespacesOf(peer);
    if (tenants.some(isFenced)) return this.#fenced(peer, signal);
    const state = this.#presence.state(peer);
    const isWatched = state === 'Late' || state === 'Away';
    await this.#stopWatches(peer, isWatched ? tenants : []);
    if (state === 'Unknown') {
      if (tenants.length === 0) {
        this.#reporter.forget(peer);
        this.#shared.delete(peer);
      }
      return {};
    }
    if (isWatched) return this.#away(peer, tenants, signal);
    await this.#reporter.say(peer, homeCondition(undefined), { tenants, signal });
    // Comes last: until the report is written, journals tell the next guardian since when the home was away.
    await deleteJournals(this.#options.client, this.#journals.byIndex(BY_PEER, peer), signal);
    return {};
  }

  /** The home may run its pods itself: none is looked after, and what was noted of them holds no more. */
  async #fenced(peer: string, signal: AbortSignal): Promise<ReconcileResult> {
    await this.#stopWatches(peer, []);
    this.#shared.delete(peer);
    await deleteJournals(this.#options.client, this.#journals.byIndex(BY_PEER, peer), signal);
    return {};
  }

  /** A home that is late is only watched, in memory. So it is known what was lost before it counts as away. */
  async #away(peer: string, tenants: readonly KubeObject[], signal: AbortSignal): Promise<ReconcileResult> {
    if (!(await this.#presence.isStillSilent(peer, signal))) return {};
    const fresh = tenants.filter(({ metadata }) => !this.#watches.has(metadata.name));
    const since = fresh.length === 0 ? undefined : await this.#reporter.awaySince(peer, signal);
    if (this.#isStopping) return {};
    for (const tenant of fresh) this.#watch(peer, tenant, since);
    const watches = [...this.#watches.values()].filter((it) => it.peer === peer);
    const summaries = watches.flatMap(({ watch }) => watch.summary ?? []);
    if (summaries.length < watches.length || this.#presence.state(peer) !== 'Away') return {};
    await this.#reporter.say(peer, homeCondition(summaries), { tenants, signal });
    return {};
  }

  #sharedOf(peer: string): Shared {
    const known = this.#shared.get(peer);
    if (known !== undefined) return known;
    const { clock, heldBytes } = this.#options;
    const made = {
      budget: new TokenBucket({ clock, ...PACE }),
      memory: new PodMemory(heldBytes),
      keptLogs: new KeptLogs(),
      listMutex: new Mutex(),
    };
    this.#shared.set(peer, made);
    return made;
  }

  #watch(peer: string, namespace: KubeObject, since: string | undefined): void {
    const { name } = namespace.metadata;
    const watch = new TenantWatch({
      ...this.#options,
      peer,
      namespace,
      since,
      ...this.#sharedOf(peer),
      bulkMutex: this.#bulkMutex,
      writes: this.#writes,
      current: () => {
        const current = this.#presence.namespace(name);
        return current?.metadata.deletionTimestamp === undefined ? current : undefined;
      },
      isAway: () => this.#presence.state(peer) === 'Away',
      isStillAway: async (signal) => this.#presence.isStillAway(peer, signal),
      marks: () => this.#presence.marks(peer),
      changed: () => this.#controller.addAfter(peer, REPORT_MS),
    });
    this.#watches.set(name, { peer, watch });
    watch.start();
  }

  /** Stops all watches of this peer but those in these namespaces, which look again. */
  async #stopWatches(peer: string, kept: readonly KubeObject[]): Promise<void> {
    const uids = new Set(kept.map(({ metadata }) => metadata.uid));
    for (const [name, { peer: owner, watch }] of this.#watches) {
      if (owner !== peer) continue;
      if (uids.has(watch.uid)) {
        watch.look();
        continue;
      }
      this.#watches.delete(name);
      await watch.stop();
    }
  }
}
