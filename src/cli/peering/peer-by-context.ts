/** `tributary peer --to-context`: all of a peering in one command, for whoever may administer both clusters. */
import { EXIT } from '../command-line.ts';
import { endpointFor, letIn, type Side, sideOf } from './both-sides.ts';
import type { Session } from './environment.ts';
import { noteMadePolicy } from './made-policies.ts';
import type { PeerArguments } from './peer-arguments.ts';
import { writeCluster } from './peer-objects.ts';
import { told, waitForPeering } from './peer.ts';

/** Returns the exit code of the first direction that does not come to be. */
export async function peerByContext(args: PeerArguments, session: Session): Promise<number> {
  const { toContext, where = {}, isMutual, sharePercent } = args;
  const at = { kubeconfig: where.kubeconfig, context: toContext };
  const client = await session.open(at);
  try {
    const here = await sideOf(session, where.context);
    const there = await sideOf(session.on(at, client), toContext);
    const lending = { sharePercent };
    // Both sides are told before anything is waited for: the one that can dial may be either of them.
    endpointFor(here, there);
    const policyThere = await letIn(there, here, lending);
    const policyHere = isMutual === true ? await letIn(here, there, lending) : undefined;
    const code = await use(here, there, { ...args, policy: policyThere });
    if (code !== EXIT.ok || isMutual !== true) return code;
    return await use(there, here, { ...args, policy: policyHere });
  } finally {
    await client.close();
  }
}

/** Pods of `home` are to run in `foreign`. */
async function use(
  home: Side,
  foreign: Side,
  { policy, ...args }: PeerArguments & { policy: string | undefined },
): Promise<number> {
  const { session, own } = home;
  session.io.out(`Peering ${own.clusterName} with ${foreign.own.clusterName}\n`);
  const { clusterID } = foreign.own;
  const wish = { ...args, endpoint: endpointFor(home, foreign), clusterID };
  const written = await writeCluster(wish, session);
  if (policy !== undefined) await noteMadePolicy(written.object.metadata.name, policy, session);
  session.io.out(told(written));
  const { clock } = session;
  // It notes what was made over there, so it stays whoever answers.
  const kept = { ...written, isNew: false };
  return waitForPeering(kept, { began: clock.monotonic(), timeoutMs: args.timeoutMs }, session);
}
