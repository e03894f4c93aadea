import type { PeeringRequest } from '../../api/peering-request.ts';
import type { Tenants } from '../../hosting/tenants/tenants.ts';
import type { Fences } from './fences.ts';

/** How far a tenant has come. */
export interface SetUp {
  isDone: boolean;
  /** The fence of a device is closed. */
  isClosed?: boolean;
  waitsFor?: string;
  lookAgainMs: number;
}

interface ClosingParts {
  fences: Pick<Fences, 'isClosed' | 'drop'>;
  tenants: Pick<Tenants, 'close'>;
  intents: { intent(clusterID: string): { returning?: { nodes: readonly string[] } } };
}

/** Of the time for stopping pods, what is not given to them: until it is seen, and written, and a kubelet acts. */
const STOP_SLACK_SECONDS = 5;
const STOPPING_MS = 1000;
const LOOK_AGAIN_MS = 5000;

/** Stops what runs of a device that was not heard for as long as was agreed; undefined: it may run. */
export async function closeFence(
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
  return { isDone: false, isClosed: true, waitsFor, lookAgainMs: left > 0 ? STOPPING_MS : LOOK_AGAIN_MS };
}
