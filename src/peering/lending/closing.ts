import { FOREIGN_CLUSTER_REASONS, type ForeignClusterReason } from '../../api/foreign-cluster.ts';
import type { Contract } from '../../api/offer.ts';
import { ANNOTATION_RESUME } from '../../api/names.ts';
import { type PeeringRequest, peeringRequests, type Suspension } from '../../api/peering-request.ts';
import type { Tenants } from '../../hosting/tenants/tenants.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Fences } from './fences.ts';
import { lastsMs, suspensionMessage } from './suspension.ts';

/** How far a tenant has come. */
export interface SetUp {
  isDone: boolean;
  /** Why what the peer had is closed to it: the fence of a device, or a suspension. */
  closedBy?: ForeignClusterReason;
  waitsFor?: string;
  lookAgainMs: number;
}

interface ClosingParts {
  fences: Pick<Fences, 'isClosed' | 'drop'>;
  tenants: Pick<Tenants, 'close' | 'suspend'>;
  clock: Pick<Clock, 'now'>;
  intents: { intent(clusterID: string): { returning?: { nodes: readonly string[] } } };
}

/** Of the time for stopping pods, what is not given to them: until it is seen, and written, and a kubelet acts. */
const STOP_SLACK_SECONDS = 5;
const STOPPING_MS = 1000;
const LOOK_AGAIN_MS = 5000;

/** Stops what runs of a device that was not heard for as long as was agreed; undefined: it may run. */
async function closeFence(
  { metadata: { name }, spec }: PeeringRequest,
  { fences, tenants, intents }: ClosingParts,
  signal: AbortSignal,
): Promise<SetUp | undefined> {
  if (spec.fence === undefined) {
    await fences.drop(name, spec.tether === true, signal);
    return undefined;
  }
  if (!(await fences.isClosed(name, signal))) return undefined;
  const { afterSeconds, stopSeconds } = spec.fence;
  // What was placed back onto the device does not run here, and the device knows of it.
  const { nodes: elsewhere = [] } = intents.intent(name).returning ?? {};
  const graceSeconds = Math.max(1, stopSeconds - STOP_SLACK_SECONDS);
  const left = await tenants.close(name, { graceSeconds, elsewhere }, signal);
  const what = left > 0 ? `${left} of its pods are being stopped` : 'its pods here are stopped';
  const waitsFor = `nothing was heard of it for ${afterSeconds} s, so ${what}, as was agreed; they may run there`;
  const lookAgainMs = left > 0 ? STOPPING_MS : LOOK_AGAIN_MS;
  return { isDone: false, closedBy: FOREIGN_CLUSTER_REASONS.fenced, waitsFor, lookAgainMs };
}

/** Closes what a peer has to it, where anything is the case that asks for that; undefined: it is open. */
export async function closed(
  request: PeeringRequest,
  { agreed, suspension }: { agreed: Contract | undefined; suspension: Suspension | undefined },
  parts: ClosingParts,
  signal: AbortSignal,
): Promise<SetUp | undefined> {
  const fenced = await closeFence(request, parts, signal);
  if (fenced !== undefined || agreed === undefined) return fenced;
  return closeSuspended(request, suspension, parts, signal);
}

/** Takes the rights of a suspended peer, and leaves it everything else; undefined: it is not suspended. */
async function closeSuspended(
  { metadata: { name } }: PeeringRequest,
  suspension: Suspension | undefined,
  { tenants, clock }: ClosingParts,
  signal: AbortSignal,
): Promise<SetUp | undefined> {
  const leftMs = suspension === undefined ? 0 : lastsMs(suspension, clock.now());
  if (suspension === undefined || leftMs === 0) return undefined;
  await tenants.suspend(name, signal);
  const waitsFor = suspensionMessage(name, suspension);
  return { isDone: false, closedBy: FOREIGN_CLUSTER_REASONS.suspended, waitsFor, lookAgainMs: leftMs };
}

/** A person's word to end a suspension counts once. */
export async function forgetResume(
  client: KubeClient,
  { metadata: { name, uid } }: PeeringRequest,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { uid, annotations: { [ANNOTATION_RESUME]: null } } };
  await client.patch(peeringRequests, { name }, { type: 'merge', body }, { signal });
}

/** Says to people which admission, quota or missing right is in the way. Throws errors that pass by themselves. */
export function refusalOf(error: unknown): string {
  if (hasCode(error, 'Forbidden', 'Invalid', 'NotFound')) return `cannot be set up: ${errorMessage(error)}`;
  throw error;
}
