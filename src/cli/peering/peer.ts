/** Peering with a cluster that a person names: what is written, what is waited for, and what is said. */
import { DIRECTIONS, type ForeignCluster, foreignClusters, peerIDOf } from '../../api/foreign-cluster.ts';
import { EXIT } from '../command-line.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import { fingerprintOf } from '../../peering/identity/identity.ts';
import type { Session } from './environment.ts';
import {
  approvalHint,
  denialHint,
  follow,
  followObject,
  orTell,
  type Outcome,
  outcomeOf,
  stateLine,
} from './foreign-clusters.ts';
import { readOwn } from './id.ts';
import type { PeerArguments } from './peer-arguments.ts';
import { confirm, takeBack, writeCluster, type WrittenCluster } from './peer-objects.ts';
import { waitForNode } from './ready-node.ts';
import { printable } from './terminal-text.ts';

/** Within this time, an earlier denial is not taken as the answer to a new wish. */
const PATIENCE_MS = 10_000;

/** Peers with the cluster at an endpoint. Returns the exit code. */
export async function peerByEndpoint(args: PeerArguments, session: Session): Promise<number> {
  const { clock, io } = session;
  const written = await writeCluster(args, session);
  io.out(told(written));
  const confirmed =
    written.object.spec?.clusterID === undefined ? await ask(written, args, session) : written;
  if (confirmed === undefined) return EXIT.failed;
  return waitForPeering(confirmed, { began: clock.monotonic(), timeoutMs: args.timeoutMs }, session);
}

/** What was written. Another endpoint is told: it may be a mistake, and the old one is no longer dialled. */
export function told({ object, isNew, previous }: WrittenCluster): string {
  const what = `ForeignCluster ${object.metadata.name}`;
  if (isNew) return `${what} made\n`;
  if (previous !== undefined && deepEqual(previous.spec, object.spec)) return `${what} is unchanged\n`;
  const [before, now] = [previous?.spec?.endpoint, object.spec?.endpoint];
  if (before === undefined || before === now) return `${what} changed\n`;
  const kept =
    previous?.status?.link?.connected === true
      ? '. The link that is up stays, so nobody has tried that address yet: tributary doctor does'
      : '';
  return `${what} changed: it is dialled at ${now}, no longer at ${before}${kept}\n`;
}

/** Shows who answers and asks; takes back what was made, and returns undefined, where the answer is no. */
async function ask(
  written: WrittenCluster,
  args: PeerArguments,
  session: Session,
): Promise<WrittenCluster | undefined> {
  const { object, isNew } = written;
  const { endpoint, timeoutMs } = args;
  const { clock, io, signal } = session;
  const { name } = object.metadata;
  io.out(`Asking who answers at ${endpoint}\n`);
  const shown = lineShower(session);
  const answeredBy = await follow(name, session, {
    untilMs: clock.monotonic() + timeoutMs,
    look: (cluster) => {
      if (cluster?.status?.answeredBy === undefined) shown(identityLine(cluster));
      return cluster?.status?.answeredBy;
    },
  }).catch(orTell(session, asksOn(name)));
  if (answeredBy === undefined) {
    io.err(`No cluster has answered at ${endpoint} within ${timeoutMs / 1000} s. ${asksOn(name)}`);
    return undefined;
  }
  const question = `The cluster that answers there is

    ${answeredBy}   (${fingerprintOf(answeredBy)})

Its owner reads the same over there: tributary id
Is it the one that you mean? [y/N] `;
  const answer = (await io.input?.ask(question, signal)) ?? '';
  if (/^y(es)?$/i.test(answer.trim())) {
    const confirmed = await confirm(written, { ...args, clusterID: answeredBy }, session);
    if (confirmed.object.metadata.name !== name) io.out(told(confirmed));
    return confirmed;
  }
  if (isNew) await takeBack(object, session);
  io.err(
    `Not confirmed. ${isNew ? `ForeignCluster ${name} is deleted.` : `ForeignCluster ${name} stays without an identity.`}\n`,
  );
  return undefined;
}

const asksOn = (name: string): string =>
  `ForeignCluster ${name} stays, and the role cluster goes on asking there. To end that: kubectl delete foreigncluster ${name}\n`;

const identityLine = (cluster: ForeignCluster | undefined): string => {
  const condition = cluster?.status?.conditions?.find(({ type }) => type === 'IdentityVerified');
  return condition?.message ?? 'waiting for the cluster role of Tributary';
};

/** Returns the exit code, having said how it went. */
export async function waitForPeering(
  { object, previous, isNew }: WrittenCluster,
  { began, timeoutMs }: { began: number; timeoutMs: number },
  session: Session,
): Promise<number> {
  const { clock, io } = session;
  const { name } = object.metadata;
  const shown = lineShower(session);
  const end = await follow(name, session, {
    untilMs: began + timeoutMs,
    look: (cluster) => {
      shown(stateLine(cluster, DIRECTIONS));
      if (cluster === undefined)
        throw new TributaryError('NotFound', `ForeignCluster ${name} was deleted meanwhile`);
      const isPatient = previous !== undefined && clock.monotonic() - began < PATIENCE_MS;
      const outcome = outcomeOf(cluster, { before: previous?.status?.outgoing, isPatient });
      return outcome && { outcome, cluster };
    },
  }).catch(
    orTell(
      session,
      `ForeignCluster ${name} stays, and the role cluster goes on. To see how far it is: tributary status. To end it: tributary unpeer ${name}\n`,
    ),
  );
  if (end === undefined) {
    const seconds = Math.round(timeoutMs / 1000);
    io.err(
      `The peering is not established after ${seconds} s. The role cluster goes on trying. To see why it is not: ` +
        `kubectl describe foreigncluster ${name}\n`,
    );
    return EXIT.failed;
  }
  return end.outcome === 'established'
    ? done(end.cluster, { began, timeoutMs, shown }, session)
    : stopped(end.outcome, { object: end.cluster, isNew }, session);
}

/** Agreed; where our pods are to run there, it is done when one could. */
async function done(
  cluster: ForeignCluster,
  { began, timeoutMs, shown }: { began: number; timeoutMs: number; shown: (line: string) => void },
  session: Session,
): Promise<number> {
  const { clock, io } = session;
  const clusterID = peerIDOf(cluster);
  if (cluster.spec?.outgoing !== 'Disabled' && clusterID !== undefined) {
    const code = await waitForNode({ clusterID, untilMs: began + timeoutMs, shown }, session);
    if (code !== EXIT.ok) return code;
  }
  io.out(`Done in ${((clock.monotonic() - began) / 1000).toFixed(1)} s\n`);
  return EXIT.ok;
}

/** It does not go on before a person, here or over there, does something. */
async function stopped(
  outcome: Exclude<Outcome, 'established'>,
  written: WrittenCluster,
  session: Session,
): Promise<number> {
  if (outcome === 'another') return answeredByAnother(written, session);
  const { io } = session;
  const { object: cluster } = written;
  const { name } = cluster.metadata;
  if (outcome === 'approval') {
    const own = await readOwn(session).catch(() => undefined);
    io.out(
      session.pastable(
        `Waiting for approval. ${approvalHint(cluster, own?.clusterID)}. The peering then comes to be by itself. To see how far it is: tributary status\n`,
      ),
    );
    return EXIT.pending;
  }
  if (outcome === 'token') {
    io.out(
      'Waiting for a join token. Its administrator makes one, over there: tributary token create. Then run the same command again ' +
        'with --token - and give it that token.\n',
    );
    return EXIT.pending;
  }
  const what =
    outcome === 'denied' ? 'Denied' : `ForeignCluster ${name} has no effect until somebody corrects it`;
  const own = outcome === 'denied' ? await readOwn(session).catch(() => undefined) : undefined;
  const hint = outcome === 'denied' ? denialHint(cluster, own?.clusterID) : '';
  io.err(`${what}. ${hint === '' ? '' : `${hint}. `}To see why: kubectl describe foreigncluster ${name}\n`);
  return EXIT.failed;
}

/** What was made for it is of no use and goes. */
async function answeredByAnother({ object, isNew }: WrittenCluster, session: Session): Promise<number> {
  const { spec: { clusterID, endpoint } = {}, status: { answeredBy = '' } = {}, metadata } = object;
  const { name } = metadata;
  const own = await readOwn(session).catch(() => undefined);
  const hint =
    own?.clusterID === answeredBy
      ? 'That is this cluster itself.'
      : `If that is the one that you mean: tributary peer ${endpoint} --id ${answeredBy}`;
  const isGone = isNew && (await goneFor(object, session));
  const said = `ForeignCluster ${name} is ${isGone ? '' : 'being '}deleted.\n`;
  session.io.err(
    `At ${endpoint} the cluster ${answeredBy} answers, not ${clusterID}. ${hint}\n` +
      (isNew ? said : asksOn(name)),
  );
  return EXIT.failed;
}

/** The next try usually has the same name. */
const GONE_MS = 10_000;

/** Deletes it; resolves to whether it is gone, and its name free, in the usual time. */
async function goneFor(object: ForeignCluster, session: Session): Promise<boolean> {
  await takeBack(object, session);
  const { name, uid } = object.metadata;
  const { client, clock, signal } = session;
  const isGone = await followObject(session, {
    untilMs: clock.monotonic() + GONE_MS,
    read: async () => client.get(foreignClusters, { name }, { signal }).catch(ignoring('NotFound')),
    look: (now) => (now?.metadata.uid === uid ? undefined : true),
  });
  return isGone === true;
}

/** Prints each line once, as long as it stays the same. */
export function lineShower({ io }: Pick<Session, 'io'>): (line: string) => void {
  let last = '';
  return (line) => {
    if (line !== last) io.out(`  ${printable(line)}\n`);
    last = line;
  };
}
