import { LABEL_HOME_UID } from '../../api/names.ts';
import { events } from '../../api/resources.ts';
import type { Draft, KubeEvent, Pod } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { remember } from '../../lib/remember.ts';
import type { CommonParts } from '../namespaces.ts';
import type { Tenant } from '../tenants.ts';
import { Allowance, EventInbox, type Waiting } from './inbox.ts';
import { homeEvent, RECENT_MS, type RemoteEvent } from './remote-events.ts';
import { Rush } from './rush.ts';

export interface EventsHomeOptions extends Pick<CommonParts, 'home' | 'homePods' | 'tenants' | 'clock'> {
  /** Name of the virtual node. */
  virtualNode: string;
  nodeName: string;
  /** When the agent before this one was last there, in milliseconds since 1970; undefined: there was none. */
  predecessorAt?: (() => number | undefined) | undefined;
  /** Puts an event into the queue; those that existed at the start get low priority. */
  enqueue: (key: string, isNew: boolean) => void;
  log: Logger;
}

/** An event may come before the watch of pods shows the pod. */
const POD_PATIENCE_MS = 15_000;
const CACHE_WAIT_MS = 1_000;
const HOME_RETRY_MS = 30_000;
/**
 * What happened longer than this before the agent that went before was last there has been told by that one: it need not be told anew
 * at each start. So long an event may wait for its turn in a burst, and so far the clocks of two clusters may be apart.
 */
const TOLD_BEFORE_MS = 60_000;
/** Events of which it is remembered that home has them. */
const MAX_TOLD = 4096;

/**
 * Brings events of remote pods home, as events of the home pods. Best effort, since they are no state. A hostile foreign
 * cluster can only falsify the events of its own pods, and can never send more than Allowance permits.
 */
export class EventsHome {
  readonly #options: EventsHomeOptions;
  readonly #inbox = new EventInbox();
  readonly #allowance: Allowance;
  readonly #rush: Rush;
  /** By key: the state that was told last. */
  readonly #told = new Map<string, string>();
  #hasComplained = false;

  constructor(options: EventsHomeOptions) {
    this.#options = options;
    this.#allowance = new Allowance(options.clock);
    this.#rush = new Rush({ clock: options.clock, release: (key) => options.enqueue(key, false) });
  }

  /** A pod of home has come, has started, or begins to go. */
  podMoves(): void {
    this.#rush.stir();
  }

  /** From now on until the tenant is closed. */
  follow(tenant: Tenant): void {
    const { enqueue, clock, log } = this.#options;
    const { homeNamespace } = tenant.mapping;
    tenant.events.open((event, isNew) => {
      const key = `${homeNamespace}/${event.uid}`;
      if (this.#told.get(key) === stateOf(event) || (!isNew && this.#wasTold(event))) return;
      if (this.#inbox.offer(key, event, clock.monotonic())) {
        // Who waits for the pods of a rush waits for their states. What is wrong is told at once.
        if (event.type !== 'Normal' || !this.#rush.hold(key)) enqueue(key, isNew);
      } else if (!this.#hasComplained) {
        this.#hasComplained = true;
        log.warn('more events come from the foreign cluster than are told at home', {
          namespace: homeNamespace,
        });
      }
    });
  }

  #wasTold({ lastAt }: RemoteEvent): boolean {
    const predecessorAt = this.#options.predecessorAt?.();
    return predecessorAt !== undefined && lastAt < predecessorAt - TOLD_BEFORE_MS;
  }

  /** @param key `homeNamespace/UID of the event over there` */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const waiting = this.#inbox.get(key);
    if (waiting === undefined) return {};
    const { homePods, tenants, clock } = this.#options;
    const [homeNamespace = ''] = key.split('/');
    const tenant = tenants.of(homeNamespace);
    if (tenant === undefined || clock.now() - waiting.event.lastAt >= RECENT_MS) return this.#drop(key);
    if (!tenant.synced || !homePods.synced) return { requeueAfterMs: CACHE_WAIT_MS };
    const pods = this.#podsOf(waiting.event, tenant);
    if (pods === undefined) {
      const ageMs = clock.monotonic() - waiting.receivedAt;
      if (ageMs >= POD_PATIENCE_MS) return this.#drop(key);
      // Tried soon, and once more: thousands of events may name pods that do not exist.
      return { requeueAfterMs: ageMs < CACHE_WAIT_MS ? CACHE_WAIT_MS : POD_PATIENCE_MS - ageMs };
    }
    const waitMs = this.#turnOf(waiting, pods.home);
    if (waitMs === undefined) return this.#drop(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    return this.#tell(key, { waiting, pods }, signal);
  }

  #drop(key: string): ReconcileResult {
    this.#inbox.remove(key);
    return {};
  }

  /** The pods on both sides, only if the remote pod is ours, of this namespace, and exactly the one that is meant. */
  #podsOf({ podName, podUid }: RemoteEvent, tenant: Tenant): { home: Pod; remote: Pod } | undefined {
    const remote = tenant.remotePod(podName);
    if (remote?.metadata.uid !== podUid) return undefined;
    const home = this.#options.homePods.get(`${tenant.mapping.homeNamespace}/${podName}`);
    if (home === undefined || home.metadata.uid !== remote.metadata.labels?.[LABEL_HOME_UID])
      return undefined;
    return { home, remote };
  }

  #turnOf(waiting: Waiting, home: Pod): number | undefined {
    const now = this.#options.clock.monotonic();
    if (waiting.dueAt === undefined) {
      const waitMs = this.#allowance.turn(home.metadata.uid);
      if (waitMs === undefined) return undefined;
      waiting.dueAt = now + waitMs;
    }
    return Math.max(0, waiting.dueAt - now);
  }

  async #tell(
    key: string,
    { waiting, pods }: { waiting: Waiting; pods: { home: Pod; remote: Pod } },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { virtualNode, nodeName, clock, log } = this.#options;
    const { event } = waiting;
    const draft = homeEvent(event, { ...pods, virtualNode, nodeName, nowMs: clock.now() });
    // An event that comes from now on is another state, with a turn of its own.
    this.#inbox.remove(key);
    try {
      await this.#write(draft, this.#told.has(key), signal);
      remember(this.#told, key, stateOf(event), MAX_TOLD);
    } catch (error) {
      log.debug('event not told at home', { key, error: errorMessage(error) });
      // Its namespace is ending, or home refuses it: it is not tried again.
      if (hasCode(error, 'Forbidden', 'Invalid', 'NotFound')) return {};
      return this.#inbox.putBack(key, waiting) ? { requeueAfterMs: HOME_RETRY_MS } : {};
    }
    return {};
  }

  /** Home may have it already, from this agent or an earlier one. */
  async #write(draft: Draft<KubeEvent>, isTold: boolean, signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    const isThere = isTold && (await this.#count(draft, signal));
    if (isThere) return;
    try {
      await home.create(events, draft, { metadataOnly: true, signal });
    } catch (error) {
      if (!hasCode(error, 'AlreadyExists')) throw error;
      await this.#count(draft, signal);
    }
  }

  /** False if it has expired. A patch that changes nothing is no write for the API server. */
  async #count(draft: Draft<KubeEvent>, signal: AbortSignal): Promise<boolean> {
    const { count, lastTimestamp, message } = draft;
    const { name = '', namespace = '' } = draft.metadata;
    const body = { count, lastTimestamp, message };
    try {
      const options = { metadataOnly: true, signal };
      await this.#options.home.patch(events, { name, namespace }, { type: 'merge', body }, options);
      return true;
    } catch (error) {
      if (hasCode(error, 'NotFound')) return false;
      throw error;
    }
  }
}

const stateOf = ({ count, lastAt }: RemoteEvent): string => `${count}/${lastAt}`;
