/** `tributary logs`: logs of our own pods, through the API server. */
import { type ForeignCluster, foreignClusters, peerIDOf } from '../../api/foreign-cluster.ts';
import { APP_NAME, LABEL_APP_INSTANCE, LABEL_APP_NAME, PEERS_NAME } from '../../api/manifest.ts';
import { isOneProcess } from '../../api/one-process.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { collect, lines } from '../../kube/body.ts';
import { parseStatus, statusError } from '../../kube/status-error.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { errorMessage, ignoring, TributaryError } from '../../lib/errors.ts';
import { LOG_LEVELS, type LogLevel } from '../../lib/log.ts';
import { painter } from '../colours.ts';
import type { Command } from '../command.ts';
import { type CommandLine, EXIT, wrongForm } from '../command-line.ts';
import { parseSeconds } from '../durations.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { findCluster } from '../peering/foreign-clusters.ts';
import { logLine } from './log-lines.ts';

interface LogsArguments {
  whose: string | undefined;
  isFollowed: boolean;
  isRaw: boolean;
  level: LogLevel;
  /** Of each pod. */
  tail: number;
  sinceSeconds: number | undefined;
}

/** An agent is named by its peer. */
const ROLES = ['cluster', 'gateway', 'node', 'peers'];

export const logsCommand: Command = clusterCommand({
  name: 'logs',
  summary: 'Show logs of the parts of Tributary in this cluster.',
  about: 'Without a role and a peer, of all parts. Lines of several pods begin with the name of their pod.',
  arguments: [
    {
      name: 'ROLE|PEER',
      text: 'cluster, gateway, node or peers; or the agent of a peer, by its name or ClusterID',
      isOptional: true,
      words: ROLES,
      names: 'foreignclusters',
    },
  ],
  options: {
    follow: { short: 'f', text: 'go on with new lines, until Ctrl-C' },
    since: { value: 'DURATION', text: 'only lines that are younger' },
    tail: { value: 'N', text: 'the last lines of each pod', fallback: '200' },
    level: {
      value: 'LEVEL',
      text: 'only lines of this level and above',
      choices: LOG_LEVELS,
      fallback: 'debug',
    },
    output: { value: 'FORMAT', short: 'o', text: 'json: lines as they were written', choices: ['json'] },
  },
  examples: [
    { line: 'tributary logs cluster -f', does: 'Follow the role cluster' },
    { line: 'tributary logs --level warn --since 1h', does: 'What has gone wrong anywhere in the last hour' },
  ],
  parse: parseLogs,
  run: logs,
});

function parseLogs({ values, flags, positionals: [whose] }: CommandLine): LogsArguments {
  const { tail = '200', since, level = 'debug' } = values;
  if (!/^\d{1,6}$/.test(tail)) throw wrongForm(`--tail must be a number of lines, not "${tail}"`);
  return {
    whose,
    isFollowed: flags.has('follow'),
    isRaw: values['output'] === 'json',
    level: level as LogLevel,
    tail: Number(tail),
    sinceSeconds: since === undefined ? undefined : parseSeconds(since, { option: 'since' }),
  };
}

/** Streams at once; more pods than that are followed by nobody. */
const AT_ONCE = 64;

async function logs(args: LogsArguments, session: Session): Promise<number> {
  const { io, signal } = session;
  const chosen = await podsOf(args.whose, session);
  const width = Math.max(...chosen.map(({ metadata }) => metadata.name.length));
  const paint = painter(io);
  let [isFailed, read, told] = [false, 0, 0];
  await eachAtOnce(chosen, args.isFollowed ? AT_ONCE : 1, async (pod) => {
    const prefix =
      chosen.length === 1 || args.isRaw ? '' : `${paint('bold', pod.metadata.name.padEnd(width))} `;
    try {
      for await (const line of linesOf(pod, args, session)) {
        read += 1;
        const shown = logLine(line, { least: args.level, paint, isRaw: args.isRaw });
        if (shown === undefined) continue;
        told += 1;
        io.out(`${prefix}${shown}\n`);
      }
    } catch (error) {
      if (signal.aborted) return;
      // The other pods are worth reading all the same.
      isFailed = true;
      io.err(`logs of ${pod.metadata.name}: ${errorMessage(error)}\n`);
    }
  });
  if (told === 0 && !isFailed && !signal.aborted) io.err(nothingIn(read, args));
  return isFailed ? EXIT.failed : EXIT.ok;
}

function nothingIn(read: number, { level, sinceSeconds }: LogsArguments): string {
  const when = sinceSeconds === undefined ? '' : ` of the last ${sinceSeconds} s`;
  if (read === 0) return `There are no lines${when}.\n`;
  const more = sinceSeconds === undefined ? ' To read more of them: --tail N' : '';
  return `None of the ${read} lines that were read${when} is of level ${level} or above.${more}\n`;
}

async function* linesOf(
  pod: Pod,
  { isFollowed, tail, sinceSeconds }: LogsArguments,
  { client, signal }: Session,
): AsyncGenerator<string> {
  const { namespace = '', name } = pod.metadata;
  const query = new URLSearchParams({
    // Ours comes first; beside it may be WireGuard.
    container: pod.spec?.containers[0]?.name ?? '',
    tailLines: String(tail),
    ...(sinceSeconds !== undefined && { sinceSeconds: String(sinceSeconds) }),
    ...(isFollowed && { follow: 'true' }),
  });
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/log?${query.toString()}`;
  const { status, body } = await client.raw({ method: 'GET', path, signal });
  if (status !== 200) {
    const text = await collect(body, { maxBytes: 65_536, excess: 'cut' });
    throw statusError(status, parseStatus(text), { what: 'GET its log' });
  }
  for await (const line of lines(body as AsyncIterable<Buffer>)) yield line.toString('utf8');
}

/** Throws NotFound where nothing of ours is meant. */
async function podsOf(whose: string | undefined, session: Session): Promise<Pod[]> {
  const { client, signal } = session;
  const labelSelector = `${LABEL_APP_NAME}=${APP_NAME}`;
  const { items: ours } = await client.list(pods, { labelSelector, signal });
  const roleOf = ({ metadata }: Pod): string =>
    (metadata.labels?.[LABEL_APP_INSTANCE] ?? '').replace(`${APP_NAME}-`, '');
  const sorted = ours.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  if (sorted.length === 0) {
    throw new TributaryError(
      'NotFound',
      'no pod of Tributary is in this cluster; a role that runs on a host writes its logs there',
    );
  }
  if (whose === undefined) return sorted;
  const process = sorted.some(isOfAll) && ROLES.includes(whose) ? 'cluster' : whose;
  const ofRole = sorted.filter((pod) => roleOf(pod) === process || pod.metadata.name === whose);
  return ofRole.length > 0 ? ofRole : agentOf(whose, sorted, session);
}

/** All roles are this one process. */
const isOfAll = ({ spec }: Pod): boolean =>
  isOneProcess({ spec: { template: { spec: spec ?? { containers: [] } } } });

/** Throws NotFound: a role may have been meant, too. */
function peerOf(clusters: readonly ForeignCluster[], whose: string): ForeignCluster {
  try {
    return findCluster(clusters, whose);
  } catch (cause) {
    const what = `"${whose}" is no role (cluster, gateway, node or peers), and as a peer it cannot be found`;
    throw new TributaryError('NotFound', what, { cause });
  }
}

async function agentOf(whose: string, ours: readonly Pod[], { client, signal }: Session): Promise<Pod[]> {
  const byName = ours.filter(({ metadata }) =>
    [
      metadata.labels?.[LABEL_PROVIDER],
      metadata.labels?.[LABEL_APP_INSTANCE]?.replace(`${APP_NAME}-peer-`, ''),
    ].includes(whose),
  );
  if (byName.length > 0) return byName;
  const list = await client.list(foreignClusters, { signal }).catch(ignoring('Forbidden'));
  const isKnown = ROLES.includes(whose);
  if (isKnown) throw new TributaryError('NotFound', `no pod of the role ${whose} is in this cluster`);
  const id = peerIDOf(peerOf(list?.items ?? [], whose));
  const found = ours.filter(({ metadata }) => metadata.labels?.[LABEL_PROVIDER] === id && id !== undefined);
  if (found.length > 0) return found;
  // One agent may serve all peers.
  const ofAll = ours.filter(({ metadata }) => metadata.labels?.[LABEL_APP_INSTANCE] === PEERS_NAME);
  if (ofAll.length > 0) return ofAll;
  throw new TributaryError(
    'NotFound',
    `no agent of ${whose} runs here: it lends nothing to this cluster, or its agent is in one process with the other roles: tributary logs cluster`,
  );
}
