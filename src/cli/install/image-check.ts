/** Whether an image can be had in a cluster: found out before what runs there is stopped. */
import type { ManifestOf } from '../../api/manifest.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { forgeImageCheck } from '../../deploy/installation/image-check.ts';
import { deleteByUid } from '../../kube/write.ts';
import { TributaryError } from '../../lib/errors.ts';
import { unended } from '../../lib/unended.ts';
import { found } from './objects.ts';
import { pullProblem, waitingReason } from './rollout.ts';
import { type InstallSession, waitFor } from './waiting.ts';

/** Throws Unavailable where it is known that a role could not run with it. What cannot be found out in time is told, and no reason to stop. */
export async function checkImage(
  session: InstallSession,
  { image, timeoutMs }: { image: string; timeoutMs: number },
): Promise<void> {
  const { client, io, signal } = session;
  const draft = forgeImageCheck(image);
  await removeCheck(session, draft);
  const made = await client.create(pods, draft, { signal });
  io.out(`trying image ${image}\n`);
  let seen: Pod = made;
  try {
    const missing = await waitFor(session, {
      what: `for a pod with image ${image}`,
      timeoutMs,
      look: async () => {
        seen = (await found(session, pods, refOf(draft))) ?? seen;
        return stateOf(seen);
      },
      isHopeless: () => pullProblem(seen) !== undefined,
    });
    judge(seen, { image, missing, io });
  } finally {
    // Also where somebody interrupts: then our signal has fired.
    await deleteByUid(client, pods, made, { gracePeriodSeconds: 0 }).catch(() => undefined);
  }
}

const refOf = ({ metadata }: ManifestOf<Pod>): { namespace: string; name: string } => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** That of a run which was killed. */
async function removeCheck(session: InstallSession, draft: ManifestOf<Pod>): Promise<void> {
  const left = await found(session, pods, refOf(draft));
  if (left === undefined) return;
  const { client, signal } = session;
  await deleteByUid(client, pods, left, { gracePeriodSeconds: 0, signal });
}

/** Empty: it has run, or runs. */
function stateOf(pod: Pod): string {
  const { running, terminated } = pod.status?.containerStatuses?.[0]?.state ?? {};
  return running === undefined && terminated === undefined ? waitingReason(pod) : '';
}

function judge(
  pod: Pod,
  { image, missing, io }: { image: string; missing: string; io: InstallSession['io'] },
): void {
  const unchanged = 'Nothing was changed, and what runs here runs on';
  const problem = pullProblem(pod);
  if (problem !== undefined) {
    throw new TributaryError(
      'Unavailable',
      `image ${image} cannot be pulled: ${unended(problem)}. ${unchanged}. Name another one with --image`,
    );
  }
  const { exitCode = 0, message = '' } = pod.status?.containerStatuses?.[0]?.state?.terminated ?? {};
  if (exitCode !== 0) {
    throw new TributaryError(
      'Unavailable',
      `image ${image} does not run Tributary (exit code ${exitCode}): ${unended(message.trim())}. ${unchanged}`,
    );
  }
  if (missing !== '') io.err(`  it is not known whether image ${image} can be pulled: ${missing}\n`);
}
