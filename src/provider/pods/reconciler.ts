import type { EventReason } from '../../api/reasons/events.ts';
import { timestamp } from '../../api/conditions.ts';
import {
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
  OFFLOADED_REASONS,
  type OffloadedReason,
} from '../../api/names.ts';
import { isDisruptionTarget, isFinished } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod, PodStatus } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { aboutPod, type EventType } from '../../kube/events.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Pace } from '../../lib/pace.ts';
import { nextChange, type PodChange } from '../forge/change.ts';
import type { ForgeContext } from '../forge/context.ts';
import { sameStatus } from '../forge/same-status.ts';
import { refusedStatus, unshowableStatus } from '../forge/status.ts';
import { homeLookups, homePace, statusCost } from '../home-paces.ts';
import { podKey } from '../home-pods.ts';
import type { CommonParts } from '../namespaces.ts';
import type { KeptBodies } from '../restored/kept-bodies.ts';
import type { Tenant } from '../tenants.ts';
import { collectRemote } from './collect.ts';
import { type Action, decide, type Note, type ReferenceState, type Situation } from './decide.ts';
import { Echoes } from './echoes.ts';
import { Ending } from './ending.ts';
import { HeldRequests } from './held-requests.ts';
import { Losses, type LossesOptions } from './losses.ts';
import { failureToTell, nameTaken, type Refusal, refusalOf, withPolicy } from './refusal.ts';
import { RemotePods } from './remote-pods.ts';
import type { RoomRefusals } from './room-refusals.ts';
import type { NodeIdentity } from './unmapped.ts';

interface PodReconcilerOptions
  extends CommonParts, Pick<LossesOptions, 'losses' | 'returnPatienceMs' | 'onBurst' | 'log'> {
  /** Of the virtual node, as it is now. */
  node: () => NodeIdentity;
  /** Undefined when the namespace is not offloaded. */
  context: (homeNamespace: string) => ForgeContext | undefined;
  references: (home: Pod) => ReferenceState;
  room: Pick<RoomRefusals, 'refused' | 'admitted'>;
  kept: Pick<KeptBodies, 'isKept' | 'keepMs' | 'release'>;
  /** That home pod has taken over the body of one that is gone. */
  onAdopted: (home: Pod) => void;
  /** Brings the pod of that key back into the queue. */
  look: (key: string) => void;
}

/** A cache that a live read contradicted is listed again; until then the key waits this long. */
const RELIST_WAIT_MS = 1_000;
const SLOWEST_RETRY_MS = 60_000;
const REFUSED_CHANGE_WAIT_MS = 30_000;

/** They usually pass by themselves in a moment. */
const WAITING: ReadonlySet<OffloadedReason> = new Set([
  OFFLOADED_REASONS.namespaceBeingMade,
  OFFLOADED_REASONS.networkPolicy,
]);

type Outcome = Promise<ReconcileResult>;
const DONE: ReconcileResult = {};

/** The shell around `decide`: gathers the situation, performs the one step. */
export class PodReconciler {
  readonly #options: PodReconcilerOptions;
  readonly #heldRequests: HeldRequests;
  readonly #remotes: RemotePods;
  readonly #ending: Ending;
  readonly #losses: Losses;
  readonly #echoes: Echoes;
  readonly #pace: Pace;
  readonly #collecting: Parameters<typeof collectRemote>[1];

  constructor(options: PodReconcilerOptions) {
    this.#options = options;
    this.#pace = homePace('podStatus', options.clock);
    this.#echoes = new Echoes((home) => options.look(podKey(home)));
    this.#heldRequests = new HeldRequests(options.clock);
    this.#remotes = new RemotePods(options.foreign);
    this.#collecting = { ...options, remotes: this.#remotes, lookups: homeLookups(options.clock) };
    const found = {
      remotes: this.#remotes,
      reclaim: async (remote: Pod, namespace: string, signal: AbortSignal): Outcome =>
        this.#reclaim(remote, options.tenants.of(namespace), signal),
    };
    this.#ending = new Ending({
      ...options,
      ...found,
      putStatus: async (...written) => this.#putStatus(...written),
    });
    this.#losses = new Losses({
      ...options,
      ...found,
      tell: (...told) => this.#tell(...told),
      writeStatus: async (...written) => this.#writeStatus(...written),
    });
  }

  async reconcile(key: string, signal: AbortSignal): Outcome {
    const home = this.#options.homePods.get(key);
    if (home === undefined) this.#forget(key);
    else if (this.#options.tenants.of(home.metadata.namespace ?? '')?.isFilling === true) return DONE;
    if (home !== undefined) this.#echoes.looks(home);
    const heldMs = this.#heldRequests.waitMs(key);
    const action = decide(this.#situation(key, home, heldMs > 0));
    try {
      const { requeueAfterMs = heldMs } = await this.#act(action, signal);
      return requeueAfterMs > 0 ? { requeueAfterMs } : DONE;
    } catch (error) {
      const reason = failureToTell(error);
      if (home !== undefined && reason !== undefined) this.#tell(home, reason, errorMessage(error));
      throw error;
    }
  }

  /** Whether a change at home is only what this program has done there, after which nothing is left to do. */
  isEcho(home: Pod): boolean {
    return this.#echoes.take(home) || this.#ending.isAsked(home);
  }

  #forget(key: string): void {
    this.#heldRequests.forget(key);
    this.#ending.forget(key);
    const [namespace = '', name = ''] = key.split('/');
    this.#options.tenants.of(namespace)?.forgetLastState(name);
  }

  #situation(key: string, home: Pod | undefined, held: boolean): Situation {
    const { tenants, namespaces, node, context, contact, references, kept, clock } = this.#options;
    const [namespace = '', name = ''] = key.split('/');
    const tenant = tenants.of(namespace);
    const remote = tenant?.remotePod(name);
    return {
      home,
      remote,
      node: node(),
      context: context(namespace),
      accepting: namespaces.isAccepting(namespace),
      contact: contact() && namespaces.isRecorded(namespace) && isKnown(tenant, home),
      // Most looks do not ask.
      get references() {
        return home === undefined ? NO_REFERENCES : references(home);
      },
      held,
      kept: remote !== undefined && kept.isKept(remote),
      now: timestamp(clock.now()),
    };
  }

  #tell(home: Pod, reason: EventReason, message: string, type: EventType = 'Warning'): void {
    this.#options.events.event(aboutPod(home), type, reason, message);
  }

  #tellAll(home: Pod, notes: readonly Note[] = []): void {
    for (const { reason, message } of notes) this.#tell(home, reason, message);
  }

  async #act(action: Action, signal: AbortSignal): Outcome {
    switch (action.do) {
      case 'nothing':
        return DONE;
      case 'create':
        return this.#create(action, signal);
      case 'change':
        return this.#change(action, signal);
      case 'writeStatus':
        return this.#showStatus(action, signal);
      case 'refuse':
        return this.#refuse(action.home, action, signal);
      case 'confirmLost':
        return this.#losses.confirm(action, signal);
      case 'deleteRemote':
        await this.#remotes.delete(action.remote, action.gracePeriodSeconds, signal);
        return DONE;
      case 'letGo':
        return this.#losses.letGo(action, signal);
      case 'collect':
        return collectRemote(action, this.#collecting, signal);
      case 'adopt':
        await this.#remotes.adopt(action.remote, action.home, signal);
        this.#options.onAdopted(action.home);
        return DONE;
      case 'finish':
        return this.#ending.finish(action, signal);
      default:
        return action satisfies never;
    }
  }

  async #create({ home, pod, notes }: Extract<Action, { do: 'create' }>, signal: AbortSignal): Outcome {
    const { foreign, room } = this.#options;
    try {
      await foreign.create(pods, pod, { metadataOnly: true, signal });
      room.admitted(home);
      this.#tellAll(home, notes);
      return DONE;
    } catch (error) {
      if (hasCode(error, 'AlreadyExists')) return this.#nameHeld(home, signal);
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      const policy = this.#options.context(home.metadata.namespace ?? '')?.sharingPolicy;
      return this.#refusedCreation(home, withPolicy(refusal, policy), signal);
    }
  }

  async #refusedCreation(home: Pod, refusal: Refusal, signal: AbortSignal): Outcome {
    const { clock, room, kept, context } = this.#options;
    let requeueAfterMs = refusal.retryAfterMs ?? slowRetry(home, clock).requeueAfterMs;
    const { tenantNamespace = '' } = context(home.metadata.namespace ?? '') ?? {};
    if (refusal.reason === OFFLOADED_REASONS.exceededQuota && kept.release(tenantNamespace)) {
      requeueAfterMs = RELIST_WAIT_MS;
    } else if (refusal.reason === OFFLOADED_REASONS.exceededQuota) {
      const verdict = room.refused(home, refusal.message);
      if (verdict.do === 'end') {
        const { status } = verdict;
        this.#tell(home, status.reason, status.message);
        return this.#writeStatus(home, status, signal);
      }
      requeueAfterMs = Math.min(requeueAfterMs, verdict.ms);
    }
    this.#heldRequests.hold(podKey(home), requeueAfterMs);
    const status = refusedStatus(home, refusal, timestamp(clock.now()));
    const { reason, message } = refusal;
    await this.#refuse(home, { reason, message, status }, signal);
    return { requeueAfterMs };
  }

  /** The name is taken: by this pod's own remote pod, which the cache does not show yet, or by an object of others. */
  async #nameHeld(home: Pod, signal: AbortSignal): Outcome {
    const { clock, tenants, context } = this.#options;
    const { name, namespace = '' } = home.metadata;
    const given = context(namespace);
    if (given === undefined) return DONE;
    const holder = await this.#remotes.live(given.tenantNamespace, name, signal);
    if (holder === undefined) return { requeueAfterMs: RELIST_WAIT_MS };
    if (holder.metadata.labels?.[LABEL_MANAGED_BY] === given.virtualNode) {
      const tenant = tenants.of(namespace);
      if (tenant?.remotePod(name)?.metadata.uid === holder.metadata.uid) return DONE;
      // Also when the clocks of the two clusters are apart.
      if (Math.abs(ageMs(holder, clock)) > RELIST_WAIT_MS) {
        tenant?.pods.relist('a pod exists that the watch has not shown');
      }
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
    if (holder.metadata.labels?.[LABEL_HOME_UID] === home.metadata.uid) {
      return this.#reclaim(holder, tenants.of(namespace), signal);
    }
    this.#heldRequests.hold(podKey(home), slowRetry(home, clock).requeueAfterMs);
    const refusal = nameTaken(`pod "${name}"`);
    const status = refusedStatus(home, refusal, timestamp(clock.now()));
    return this.#refuse(home, { ...refusal, status }, signal);
  }

  async #change(
    { home, remote, change: first }: Extract<Action, { do: 'change' }>,
    signal: AbortSignal,
  ): Outcome {
    const { context: contextOf, clock } = this.#options;
    const context = contextOf(home.metadata.namespace ?? '');
    if (context === undefined) return DONE;
    const refused = new Map<string, string>();
    for (let change: PodChange | undefined = first; change !== undefined;) {
      const why = await this.#remotes.refusalOf(remote, change, signal);
      if (why === undefined) return DONE;
      refused.set(change.what, why);
      this.#tell(home, 'FailedUpdate', `the foreign cluster refuses to change ${change.what}: ${why}`);
      // The rest still travels; the last change records that this generation has been dealt with.
      change = nextChange(home, remote, context, refused);
    }
    // Not even the record was accepted: asked again later, and until then the status is shown.
    this.#heldRequests.hold(
      podKey(home),
      Math.max(REFUSED_CHANGE_WAIT_MS, slowRetry(home, clock).requeueAfterMs),
    );
    return { requeueAfterMs: 1 };
  }

  async #showStatus(
    { home, status, news }: Extract<Action, { do: 'writeStatus' }>,
    signal: AbortSignal,
  ): Outcome {
    const waitMs = this.#turn(home, status);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const outcome = await this.#writeStatus(home, status, signal);
    if (news !== undefined) this.#options.events.event(aboutPod(home), 'Normal', news.reason, news.message);
    return outcome;
  }

  /** How long a status has to wait, since the foreign cluster says something new too often. The end of a pod comes but once. */
  #turn(home: Pod, status: PodStatus): number {
    return isFinished({ status }) ? 0 : this.#pace.turn(home.metadata.uid, statusCost(status));
  }

  async #writeStatus(home: Pod, status: PodStatus, signal: AbortSignal): Outcome {
    const { clock } = this.#options;
    try {
      await this.#echoes.around(home, async () => {
        const written = await this.#putStatus(home, status, signal);
        // The end of a pod may have to be carried across, and one that is disrupted may have to go.
        const isLast = written !== undefined && !isFinished(written) && !isDisruptionTarget(written);
        return isLast ? written : undefined;
      });
      return DONE;
    } catch (error) {
      if (!hasCode(error, 'Invalid')) throw error;
      const message = `what the foreign cluster reports cannot be shown: ${errorMessage(error)}`;
      const instead = unshowableStatus(home, message, timestamp(clock.now()));
      if (!sameStatus(instead, home.status ?? {})) {
        this.#tell(home, 'FailedStatusUpdate', message);
        await this.#putStatus(home, instead, signal);
      }
      return slowRetry(home, clock);
    }
  }

  /** Returns the pod as it was written, by its new version; undefined: it is gone. */
  async #putStatus(home: Pod, status: PodStatus, signal: AbortSignal): Promise<Pod | undefined> {
    const options = { subresource: 'status', metadataOnly: true, signal };
    const written = await this.#options.home
      .replace(pods, { ...home, status }, options)
      .catch(ignoring('NotFound'));
    return written && { ...home, metadata: written.metadata, status };
  }

  async #refuse(
    home: Pod,
    refusal: { reason: OffloadedReason; message: string; status: PodStatus; notes?: readonly Note[] },
    signal: AbortSignal,
  ): Outcome {
    if (!sameStatus(refusal.status, home.status ?? {})) {
      const waitMs = this.#turn(home, refusal.status);
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      await this.#writeStatus(home, refusal.status, signal);
      const isWaiting = WAITING.has(refusal.reason);
      this.#tell(home, refusal.reason, refusal.message, isWaiting ? 'Normal' : 'Warning');
      this.#tellAll(home, refusal.notes);
    }
    return slowRetry(home, this.#options.clock);
  }

  async #reclaim(remote: Pod, tenant: Tenant | undefined, signal: AbortSignal): Outcome {
    if (tenant === undefined) return DONE;
    await this.#remotes.reclaim(remote, tenant, signal);
    return { requeueAfterMs: RELIST_WAIT_MS };
  }
}

const NO_REFERENCES: ReferenceState = { missing: [], refused: [], pending: false, notes: [] };

/** To let a pod go, its remote pod is enough: our rights at home may have ended with its namespace, and other caches with them. */
const isKnown = (tenant: Tenant | undefined, home: Pod | undefined): boolean =>
  tenant === undefined ||
  (home?.metadata.deletionTimestamp === undefined ? tenant.synced : tenant.pods.synced);

const ageMs = (object: Pod, clock: Clock): number =>
  clock.now() - Date.parse(object.metadata.creationTimestamp);

/** Doubles with the pod's age, so that the backoff needs no memory: after 1 s, 2 s, 4 s … at most a minute. */
const slowRetry = (home: Pod, clock: Clock): { requeueAfterMs: number } => ({
  requeueAfterMs: Math.min(SLOWEST_RETRY_MS, Math.max(1_000, ageMs(home, clock))),
});
