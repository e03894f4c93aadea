import type { EventReason } from '../../api/reasons/events.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { persistentVolumeClaims, persistentVolumes } from '../../api/resources.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventSubject } from '../../kube/events.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Pace } from '../../lib/pace.ts';
import { homePace } from '../home-paces.ts';
import type { CommonParts } from '../namespaces.ts';
import { refusalOf } from '../pods/refusal.ts';
import type { ClaimSides } from './claim-sides.ts';
import { ANNOTATION_SELECTED_NODE, type Claim, homeUidOf, isOf, type Volume, volumeName } from './claims.ts';
import {
  CLAIM_REASONS,
  type ClaimAction,
  type ClaimSituation,
  decideClaim,
  mayDeleteRemote,
} from './decide.ts';

/** What the caches say of one claim. */
export interface Known {
  situation: ClaimSituation;
  sides: ClaimSides;
}

interface ClaimReconcilerOptions extends Pick<CommonParts, 'home' | 'foreign' | 'events' | 'clock'> {
  owner: string;
  /** Undefined where nothing is known of the namespace's claims. */
  situation: (namespace: string, name: string) => Known | undefined;
  /** Until the outlook of a remote claim is clear at the latest. */
  waitMs: (remote: Claim) => number;
  relistVolumes: (reason: string) => void;
}

type Outcome = Promise<ReconcileResult>;
type Act<K extends ClaimAction['do']> = Extract<ClaimAction, { do: K }>;
const DONE: ReconcileResult = {};
/** A cache contradicted by a live read is listed again; until then the key waits this long. */
const RELIST_WAIT_MS = 1_000;
/** After a refusal by the foreign cluster: no watch would show that it would no longer refuse. */
const REFUSED_WAIT_MS = 60_000;

/** The shell around `decideClaim`: gathers the situation, performs the one step. */
export class ClaimReconciler {
  readonly #options: ClaimReconcilerOptions;
  readonly #pace: Pace;

  constructor(options: ClaimReconcilerOptions) {
    this.#options = options;
    this.#pace = homePace('volume', options.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Outcome {
    const [namespace = '', name = ''] = key.split('/');
    const known = this.#options.situation(namespace, name);
    if (known === undefined) return DONE;
    return this.#act(decideClaim(known.situation), known, signal);
  }

  async #act(action: ClaimAction, known: Known, signal: AbortSignal): Outcome {
    switch (action.do) {
      case 'nothing':
        return DONE;
      case 'wait':
        return { requeueAfterMs: this.#options.waitMs(action.remote) };
      case 'createRemote':
        return this.#createRemote(action, known.sides, signal);
      case 'createVolume':
        return this.#createVolume(action, signal);
      case 'updateVolume':
        return this.#updateVolume(action, signal);
      case 'refuse':
        return this.#refuse(action, signal);
      case 'deleteRemote':
        return this.#deleteRemote(action.remote, known, signal);
      case 'deleteVolume':
        return this.#deleteVolume(action.volume, known, signal);
      case 'tell':
        this.#tell(action.home, action);
        return DONE;
      case 'confirmLost':
        return this.#confirmLost(action.home, known, signal);
      default:
        return action satisfies never;
    }
  }

  async #createRemote({ home, claim }: Act<'createRemote'>, sides: ClaimSides, signal: AbortSignal): Outcome {
    const { foreign, owner } = this.#options;
    try {
      await foreign.create(persistentVolumeClaims, claim, { signal });
      return DONE;
    } catch (error) {
      if (hasCode(error, 'AlreadyExists')) {
        const { name, namespace } = claim.metadata;
        const holder = await this.#remote({ name: name ?? '', namespace: namespace ?? '' }, signal);
        if (holder === undefined || isOf(holder, owner)) {
          sides.relist('a claim exists that the watch has not shown');
          return { requeueAfterMs: RELIST_WAIT_MS };
        }
        const message = `claim "${name}" exists in tenant namespace "${namespace}" and is not ours; it is left alone`;
        return this.#refuse({ home, reason: CLAIM_REASONS.nameTaken, message, unselect: true }, signal);
      }
      const refusal = refusalOf(error);
      // One that passes is waited for.
      if (refusal === undefined || refusal.retryAfterMs !== undefined) throw error;
      const message = `the foreign cluster refuses the claim: ${refusal.message}`;
      return this.#refuse({ home, reason: refusal.reason, message, unselect: true }, signal);
    }
  }

  async #createVolume({ volume, home }: Act<'createVolume'>, signal: AbortSignal): Outcome {
    const { owner } = this.#options;
    try {
      await this.#options.home.create(persistentVolumes, volume, { signal });
    } catch (error) {
      if (hasCode(error, 'Forbidden', 'Invalid')) {
        this.#tell(home, { reason: CLAIM_REASONS.failed, message: errorMessage(error) });
      }
      if (!hasCode(error, 'AlreadyExists')) throw error;
      const holder = await this.#volume(home.metadata.uid, signal);
      // The agent of another foreign cluster was chosen and was faster: the claim is bound to its volume, and ours goes.
      if (holder !== undefined && !isOf(holder, owner)) return DONE;
      this.#options.relistVolumes('a volume exists that the watch has not shown');
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
    return DONE;
  }

  async #updateVolume({ volume }: Act<'updateVolume'>, signal: AbortSignal): Outcome {
    const waitMs = this.#pace.turn(volume.metadata.uid);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#options.home.replace(persistentVolumes, volume, { signal }).catch(ignoring('NotFound'));
    return DONE;
  }

  /** The event comes first: if this is killed in between, the event comes twice rather than never. */
  async #refuse({ home, unselect, ...why }: Omit<Act<'refuse'>, 'do'>, signal: AbortSignal): Outcome {
    this.#tell(home, why);
    if (!unselect) return { requeueAfterMs: REFUSED_WAIT_MS };
    // The scheduler may choose this node again at once.
    const waitMs = this.#pace.turn(home.metadata.uid);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { [ANNOTATION_SELECTED_NODE]: _node, ...annotations } = home.metadata.annotations ?? {};
    const desired = { ...KIND, ...home, metadata: { ...home.metadata, annotations } };
    await this.#options.home.replace(persistentVolumeClaims, desired, { signal }).catch(ignoring('NotFound'));
    return DONE;
  }

  async #deleteRemote(remote: Claim, known: Known, signal: AbortSignal): Outcome {
    const { owner, foreign } = this.#options;
    const uid = homeUidOf(remote) ?? '';
    const home = await this.#homeClaim(known.situation, remote.metadata.name, signal);
    const volume = await this.#volume(uid, signal);
    const isOurs = volume !== undefined && isOf(volume, owner);
    if (!isOf(remote, owner) || !mayDeleteRemote(remote, { home, volume, isOurs })) {
      if (volume !== undefined && home !== undefined && isUnlabelled(volume))
        this.#tellUnlabelled(home, volume);
      return this.#doubt(known, 'a claim or volume is not as the cache has it');
    }
    const { metadata } = remote;
    // By version, since it may have been bound after it was read.
    const precondition = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
    const deleting = foreign.delete(persistentVolumeClaims, metadata, { ...precondition, signal });
    await deleting.catch(ignoring('NotFound'));
    return DONE;
  }

  async #deleteVolume(volume: Volume, known: Known, signal: AbortSignal): Outcome {
    const { place } = known.situation;
    const { name = '', uid: claimUid } = volume.spec?.claimRef ?? {};
    const remote = await this.#remote({ namespace: place.tenantNamespace, name }, signal);
    const home = await this.#homeClaim(known.situation, name, signal);
    if ((remote !== undefined && homeUidOf(remote) === claimUid) || home?.metadata.uid === claimUid) {
      return this.#doubt(known, 'a claim is not as the cache has it');
    }
    const { metadata } = volume;
    // By version, since somebody may have set Retain after it was read.
    const precondition = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
    const deleting = this.#options.home.delete(persistentVolumes, metadata, { ...precondition, signal });
    await deleting.catch(ignoring('NotFound'));
    return DONE;
  }

  async #confirmLost(home: Claim, known: Known, signal: AbortSignal): Outcome {
    const { place } = known.situation;
    const { name, uid } = home.metadata;
    const remote = await this.#remote({ namespace: place.tenantNamespace, name }, signal);
    if (remote !== undefined && homeUidOf(remote) === uid) {
      return this.#doubt(known, 'a claim exists that the watch has not shown');
    }
    const message = `claim "${name}" in tenant namespace "${place.tenantNamespace}", where the data were, is gone; no other is made in its place`;
    this.#tell(home, { reason: CLAIM_REASONS.lost, message });
    return DONE;
  }

  #doubt({ sides }: Known, reason: string): ReconcileResult {
    sides.relist(reason);
    this.#options.relistVolumes(reason);
    return { requeueAfterMs: REFUSED_WAIT_MS };
  }

  /** Its data stay over there, but nothing looks after the volume any more. */
  #tellUnlabelled(home: Claim, { metadata: { name } }: Volume): void {
    const label = `${LABEL_MANAGED_BY}=${this.#options.owner}`;
    const message = `PersistentVolume "${name}" no longer bears the label by which it is looked after; to put it back: kubectl label pv ${name} ${label}`;
    this.#tell(home, { reason: CLAIM_REASONS.lost, message });
  }

  #tell(home: Claim, { reason, message }: { reason: EventReason; message: string }): void {
    this.#options.events.event(claimSubject(home), 'Warning', reason, message);
  }

  async #homeClaim(
    { home, namespace }: ClaimSituation,
    name: string,
    signal: AbortSignal,
  ): Promise<Claim | undefined> {
    const ref = home?.metadata ?? { namespace, name };
    return this.#options.home.get(persistentVolumeClaims, ref, { signal }).catch(ignoring('NotFound'));
  }

  async #remote(ref: { namespace: string; name: string }, signal: AbortSignal): Promise<Claim | undefined> {
    return this.#options.foreign.get(persistentVolumeClaims, ref, { signal }).catch(ignoring('NotFound'));
  }

  async #volume(claimUid: string, signal: AbortSignal): Promise<Volume | undefined> {
    const ref = { name: volumeName(claimUid) };
    return this.#options.home.get(persistentVolumes, ref, { signal }).catch(ignoring('NotFound'));
  }
}

const isUnlabelled = ({ metadata }: Volume): boolean => metadata.labels?.[LABEL_MANAGED_BY] === undefined;

/** The API server leaves this out of objects in a list. */
const KIND = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };

export const claimSubject = ({ metadata }: Claim): EventSubject => ({ ...KIND, metadata });
