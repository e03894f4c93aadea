import type { EventReason } from '../../api/reasons/events.ts';
import type { Draft } from '../../api/wire.ts';
import { LABEL_MANAGED_BY, STORAGE_PROVISIONER } from '../../api/names.ts';
import type { Claim, StorageClass, Volume } from './claims.ts';
import {
  ANNOTATION_PROVISIONER,
  ANNOTATION_SELECTED_NODE,
  boundTo,
  claimUidOf,
  homeUidOf,
  isBound,
  isGoing,
  isOurClass,
  volumeName,
} from './claims.ts';
import type { StoragePlace } from './forge.ts';
import { amountOf, forgeRemoteClaim, forgeVolume, unsupported, withFacts } from './forge.ts';
import { type ClassMapping, mapClass } from './mapping.ts';

/**
 * What is known of a remote claim that is not bound yet: `waits` for its first consumer, as it should; `failed`: no volume
 * could be made for it; `unknown`: too early to say.
 */
export type Outlook = 'waits' | 'failed' | 'unknown';

/** All that a decision about one name of a home namespace may know. */
export interface ClaimSituation {
  /** At home. */
  namespace: string;
  home: Claim | undefined;
  /** Of the home claim. */
  homeClass: StorageClass | undefined;
  /** The claim of that name over there that is ours, whichever home claim it was made for. */
  remote: Claim | undefined;
  outlook: Outlook;
  /** Our volumes here that were made for claims of this name, one after the other. */
  volumes: readonly Volume[];
  virtualNode: string;
  nodeName: string;
  mapping: ClassMapping;
  place: StoragePlace;
  /** False while the namespace is being taken out. */
  accepting: boolean;
  /** Whether all caches are complete and the foreign cluster answers. */
  contact: boolean;
}

/** Exactly one step. The watch brings its result back, and the next step is decided from that. */
export type ClaimAction =
  | { do: 'nothing' }
  /** Look again when the outlook of the remote claim is known. */
  | { do: 'wait'; remote: Claim }
  | { do: 'createRemote'; home: Claim; claim: Draft<Claim> }
  | { do: 'createVolume'; home: Claim; volume: Draft<Volume> }
  | { do: 'updateVolume'; volume: Volume }
  /** `unselect`: another node may do; the scheduler is to choose again. */
  | { do: 'refuse'; home: Claim; reason: EventReason; message: string; unselect: boolean }
  /** By the caches nobody wants it: to be confirmed by live reads. */
  | { do: 'deleteRemote'; remote: Claim }
  /** By the caches its claims are gone: to be confirmed by live reads. */
  | { do: 'deleteVolume'; volume: Volume }
  | { do: 'tell'; home: Claim; reason: EventReason; message: string }
  /** The caches hold no remote claim for a volume: to be confirmed by a live read. */
  | { do: 'confirmLost'; home: Claim };

const NOTHING: ClaimAction = { do: 'nothing' };

export const CLAIM_REASONS = {
  notSupported: 'VolumeNotSupported',
  bindingMode: 'WaitForFirstConsumerNeeded',
  nameTaken: 'NameTaken',
  failed: 'ProvisioningFailed',
  namespaceNotOffloaded: 'NamespaceNotOffloaded',
  lost: 'VolumeLost',
  expansion: 'VolumeExpansionNotCarried',
} as const;

export function decideClaim(situation: ClaimSituation): ClaimAction {
  const { home, remote, contact } = situation;
  if (!contact) return NOTHING;
  const action = decideEnded(situation);
  if (action !== undefined) return action;
  if (remote !== undefined && homeUidOf(remote) !== home?.metadata.uid && isLeft(situation, remote)) {
    return { do: 'deleteRemote', remote };
  }
  if (home === undefined || isGoing(home)) return NOTHING;
  return boundTo(home) === undefined ? decideUnbound(situation, home) : decideBound(situation, home);
}

/** First the claim over there goes, then the volume here, which is the only record of it. */
function decideEnded({ home, remote, volumes }: ClaimSituation): ClaimAction | undefined {
  const volume = volumes.find((one) => isEnded(one, home));
  if (volume === undefined) return undefined;
  if (remote === undefined || homeUidOf(remote) !== claimUidOf(volume)) return { do: 'deleteVolume', volume };
  return isGoing(remote) ? undefined : { do: 'deleteRemote', remote };
}

/** Whether the volume's claim is gone (as the volume controller says), and the volume is to go, too. */
function isEnded(volume: Volume, home: Claim | undefined): boolean {
  const { spec, status } = volume;
  return (
    status?.phase === 'Released' &&
    spec?.persistentVolumeReclaimPolicy === 'Delete' &&
    claimUidOf(volume) !== home?.metadata.uid
  );
}

/** A remote claim whose home claim is gone. A bound one holds data, which go only if its volume says so. */
function isLeft({ volumes }: ClaimSituation, remote: Claim): boolean {
  const hasVolume = volumes.some((volume) => claimUidOf(volume) === homeUidOf(remote));
  return !isGoing(remote) && !hasVolume && !isBound(remote);
}

function decideBound(situation: ClaimSituation, home: Claim): ClaimAction {
  const { volumes } = situation;
  const { uid } = home.metadata;
  const volume = volumes.find((one) => claimUidOf(one) === uid);
  const remote = ownRemote(situation, uid);
  if (volume === undefined || boundTo(home) !== volume.metadata.name) {
    // The scheduler has chosen another node in the meantime, and the volume was made there.
    return remote === undefined || isGoing(remote) ? NOTHING : { do: 'deleteRemote', remote };
  }
  if (remote === undefined) return { do: 'confirmLost', home };
  const known = isBound(remote) ? withFacts(volume, remote) : volume;
  return known === volume ? decideHealth(home, remote) : { do: 'updateVolume', volume: known };
}

const ownRemote = ({ remote }: ClaimSituation, uid: string): Claim | undefined =>
  remote !== undefined && homeUidOf(remote) === uid ? remote : undefined;

function decideHealth(home: Claim, remote: Claim): ClaimAction {
  if (remote.status?.phase === 'Lost') {
    const message = `claim "${home.metadata.name}" over there has lost its volume`;
    return { do: 'tell', home, reason: CLAIM_REASONS.lost, message };
  }
  const [asked, there] = [home, remote].map(({ spec }) => amountOf(spec?.resources?.requests?.['storage']));
  if (asked === undefined || there === undefined || asked <= there) return NOTHING;
  const message =
    'the volume does not grow: what is asked for is not carried to the foreign cluster; leave allowVolumeExpansion out of the StorageClass';
  return { do: 'tell', home, reason: CLAIM_REASONS.expansion, message };
}

function decideUnbound(situation: ClaimSituation, home: Claim): ClaimAction {
  const { homeClass, nodeName, volumes } = situation;
  const { annotations = {}, uid } = home.metadata;
  if (!isOurClass(homeClass) || annotations[ANNOTATION_PROVISIONER] !== STORAGE_PROVISIONER) return NOTHING;
  if (volumes.some(({ metadata }) => metadata.name === volumeName(uid))) return NOTHING;
  if (homeClass.volumeBindingMode !== 'WaitForFirstConsumer') {
    const message = `StorageClass "${homeClass.metadata.name}" needs volumeBindingMode WaitForFirstConsumer: where the volume is to be follows from where the pod runs`;
    return { do: 'tell', home, reason: CLAIM_REASONS.bindingMode, message };
  }
  return annotations[ANNOTATION_SELECTED_NODE] === nodeName
    ? decideSelected(situation, home, homeClass)
    : NOTHING;
}

function decideSelected(situation: ClaimSituation, home: Claim, homeClass: StorageClass): ClaimAction {
  const { remote, place, mapping, virtualNode, accepting, namespace } = situation;
  const what = unsupported(home);
  if (what !== undefined) {
    const message = `a volume in a foreign cluster can have no ${what}`;
    return refuse(home, { reason: CLAIM_REASONS.notSupported, message, unselect: false });
  }
  if (!accepting) {
    const message = `namespace "${namespace}" is not, or not yet, offloaded to virtual node ${virtualNode}`;
    return refuse(home, { reason: CLAIM_REASONS.namespaceNotOffloaded, message });
  }
  if (remote === undefined) {
    const mapped = mapClass(homeClass, mapping, virtualNode);
    if ('reason' in mapped) return refuse(home, mapped);
    return { do: 'createRemote', home, claim: forgeRemoteClaim(home, { place, ...mapped }) };
  }
  if (isGoing(remote)) return NOTHING;
  if (homeUidOf(remote) !== home.metadata.uid) return nameHeld(home, remote);
  return decideAccepted(situation, { home, homeClass, remote });
}

function decideAccepted(
  { outlook, place, virtualNode }: ClaimSituation,
  { home, homeClass, remote }: { home: Claim; homeClass: StorageClass; remote: Claim },
): ClaimAction {
  if (isBound(remote) || outlook === 'waits') {
    return { do: 'createVolume', home, volume: forgeVolume(home, { homeClass, remote, place }) };
  }
  if (outlook === 'unknown') return { do: 'wait', remote };
  const message = `no volume could be made in the cluster of virtual node ${virtualNode}; its own words are in the events of this claim`;
  return refuse(home, { reason: CLAIM_REASONS.failed, message });
}

/** An earlier claim of the same name is kept for its data. */
function nameHeld(home: Claim, remote: Claim): ClaimAction {
  const message =
    `claim "${home.metadata.name}" over there is of an earlier claim of this name and is kept, as its reclaim policy says ` +
    `(PersistentVolume ${volumeName(homeUidOf(remote) ?? '')}); delete it over there, or take another name`;
  return refuse(home, { reason: CLAIM_REASONS.nameTaken, message });
}

const refuse = (
  home: Claim,
  { unselect = true, ...why }: { reason: EventReason; message: string; unselect?: boolean },
): ClaimAction => ({ do: 'refuse', home, ...why, unselect });

/** What live reads of both clusters have found. */
interface Found {
  home: Claim | undefined;
  /** The volume here with the name that belongs to the remote claim, whoever made it. */
  volume: Volume | undefined;
  isOurs: boolean;
}

/** Whether a remote claim may be deleted: its data stay as long as anything may still refer to them. */
export function mayDeleteRemote(remote: Claim, { home, volume, isOurs }: Found): boolean {
  const uid = homeUidOf(remote);
  const own = isOurs && volume !== undefined && claimUidOf(volume) === uid ? volume : undefined;
  if (uid === undefined) return false;
  if (home?.metadata.uid !== uid) return own === undefined ? !isBound(remote) : isEnded(own, home);
  const bound = boundTo(home);
  if (bound === undefined || own !== undefined) return false;
  // A volume that cannot be found may still be restored, and belongs to this claim. So does one whose label was taken off.
  return bound !== volumeName(uid) || isOfAnother(volume, uid, isOurs);
}

/** Whether another virtual node has made the volume of that claim. */
const isOfAnother = (volume: Volume | undefined, claimUid: string, isOurs: boolean): boolean =>
  volume?.metadata.labels?.[LABEL_MANAGED_BY] !== undefined && claimUidOf(volume) === claimUid && !isOurs;
