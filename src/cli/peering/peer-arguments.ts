import type { PeeringWish } from '../../api/foreign-cluster.ts';
import { ENDPOINT_PATTERN } from '../../api/limits.ts';
import { checkedLabel, checkedSubdomain } from '../../api/manifest.ts';
import { TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { isClusterID } from '../../api/forms.ts';
import { parseJoinToken } from '../../peering/identity/join-tokens.ts';
import type { Options } from '../command.ts';
import { chosen, listOf, wrongForm, type CommandIo, type CommandLine } from '../command-line.ts';
import { timeoutMsOf } from '../durations.ts';
import type { Where } from '../kubeconfig.ts';

const WISHES = ['Auto', 'Enabled', 'Disabled'] as const;

export const PEER_OPTIONS: Options = {
  token: {
    value: 'TOKEN',
    text: 'join token of the other cluster; - reads it from standard input, where no list of processes shows it',
  },
  id: {
    value: 'CLUSTER_ID',
    text: 'the ClusterID that must answer; its owner reads it over there: tributary id',
  },
  name: { value: 'NAME', text: 'name of the ForeignCluster', fallback: 'the ClusterID, or the host' },
  outgoing: {
    value: 'WISH',
    text: 'whether our pods are to run there',
    choices: WISHES,
    fallback: 'Enabled',
  },
  incoming: { value: 'WISH', text: 'whether its pods may run here', choices: WISHES, fallback: 'Auto' },
  namespaces: { value: 'NS,...', text: 'namespaces of ours that are to run there', names: 'namespaces' },
  'to-context': {
    value: 'NAME',
    text: 'context of the other cluster in the same kubeconfig; instead of ENDPOINT',
    names: 'contexts',
  },
  mutual: { text: 'with --to-context: pods of the other cluster are to run here too' },
  share: { value: 'PERCENT', text: 'with --to-context: how much of what is free is lent', fallback: '50' },
  yes: { text: 'do not ask; needs --id or --token', isHidden: true },
  timeout: { value: 'DURATION', text: 'how long to wait', fallback: '60s' },
};

export interface PeerArguments {
  /** Absent: the other side dials. */
  endpoint: string | undefined;
  /** Given, or taken from the token; without it a person has to confirm who answers. */
  clusterID?: string;
  token?: string;
  /** Name of the ForeignCluster, if one is created. */
  name?: string;
  outgoing: PeeringWish;
  incoming?: PeeringWish;
  namespaces?: string[];
  timeoutMs: number;
  /** The other cluster, where whoever calls may administer it too. */
  toContext?: string;
  where?: Partial<Where>;
  isMutual?: boolean;
  sharePercent?: number;
}

/** Port of a peering endpoint, where none is named. */
const DEFAULT_PORT = 7443;
const DEFAULT_TIMEOUT = '60s';

/** With --to-context nobody has to prove who it is: the other cluster is asked itself. */
function byContext(line: CommandLine): PeerArguments {
  const { values, flags } = line;
  if (line.positionals.length > 0) throw wrongForm('give either ENDPOINT or --to-context');
  refuseWith(line, ['token', 'id', 'outgoing', 'incoming', 'name'], 'is not for --to-context');
  const { 'to-context': toContext = '', kubeconfig, context, namespaces } = values;
  return {
    toContext,
    where: { kubeconfig, context },
    endpoint: undefined,
    outgoing: 'Enabled',
    isMutual: flags.has('mutual'),
    ...(values['share'] !== undefined && { sharePercent: percent(values['share']) }),
    ...(namespaces !== undefined && { namespaces: checkedNamespaces(namespaces) }),
    timeoutMs: timeoutMsOf(line, DEFAULT_TIMEOUT),
  };
}

const checkedNamespaces = (text: string): string[] =>
  listOf(text).map((name) => checkedLabel('--namespaces', name));

function refuseWith({ values, flags }: CommandLine, names: readonly string[], why: string): void {
  const given = names.find((name) => values[name] !== undefined || flags.has(name));
  if (given !== undefined) throw wrongForm(`--${given} ${why}`);
}

function percent(text: string): number {
  const number = /^\d{1,3}%?$/.test(text) ? Number.parseInt(text, 10) : Number.NaN;
  if (number >= 1 && number <= 100) return number;
  throw new TributaryError('Invalid', `--share must be from 1 to 100 percent, not "${text}"`);
}

/** Throws Invalid. `--token -` reads the token, so that no list of processes shows it. */
export async function parsePeer(line: CommandLine, io: CommandIo): Promise<PeerArguments> {
  const { values, flags } = line;
  if (values['to-context'] !== undefined) return byContext(line);
  const [endpoint] = line.positionals;
  if (endpoint === undefined) throw wrongForm('ENDPOINT is missing, or --to-context');
  refuseWith(line, ['mutual', 'share'], 'is for --to-context only');
  const token = values['token'] === '-' ? await readToken(io) : values['token']?.trim();
  const clusterID = identity(values['id'], token);
  if (clusterID === undefined) checkSomebodyIsThere(flags, io);
  const { name, outgoing, incoming, namespaces } = values;
  return {
    endpoint: checkedEndpoint(endpoint),
    ...present({ clusterID, token }),
    ...(name !== undefined && { name: checkedSubdomain('--name', name) }),
    outgoing: 'Enabled',
    ...chosen<PeerArguments>(outgoing, 'outgoing'),
    ...chosen<PeerArguments>(incoming, 'incoming'),
    ...(namespaces !== undefined && { namespaces: checkedNamespaces(namespaces) }),
    timeoutMs: timeoutMsOf(line, DEFAULT_TIMEOUT),
  };
}

/** A token from standard input. Throws Invalid where it is empty. */
export async function readToken({ input }: CommandIo): Promise<string> {
  const text = (await input?.readAll())?.trim() ?? '';
  if (text === '')
    throw new TributaryError('Invalid', '--token - reads the token from standard input, which is empty');
  return text;
}

function identity(id: string | undefined, token: string | undefined): string | undefined {
  const ofToken = token === undefined ? undefined : parseJoinToken(token).clusterID;
  if (id === undefined) return ofToken;
  const clusterID = id.trim().toLowerCase().replaceAll('-', '');
  if (!isClusterID(clusterID)) {
    throw new TributaryError(
      'Invalid',
      `--id "${id}" is not a ClusterID; its owner reads it over there: tributary id`,
    );
  }
  if (ofToken !== undefined && ofToken !== clusterID) {
    throw new TributaryError('Invalid', `the token is of cluster ${ofToken}, but --id says ${clusterID}`);
  }
  return clusterID;
}

/** An answer alone proves nothing: a person has to confirm who answered, or an ID or a token has to prove it. */
function checkSomebodyIsThere(flags: ReadonlySet<string>, { input }: CommandIo): void {
  if (flags.has('yes')) {
    throw new TributaryError('Invalid', '--yes does not say which cluster is trusted: add --id or --token');
  }
  if (input?.isTerminal === true) return;
  throw new TributaryError(
    'Invalid',
    'without --id or --token a person has to confirm who answers, and there is no terminal: add one of them',
  );
}

function checkedEndpoint(text: string): string {
  const isBare = /^(\[[^\]]*\]|[^:]+)$/.test(text);
  const endpoint = isBare ? `${text}:${DEFAULT_PORT}` : text;
  if (new RegExp(ENDPOINT_PATTERN, 'u').test(endpoint)) return endpoint;
  throw new TributaryError('Invalid', `ENDPOINT "${text}" is not of the form HOST:PORT`);
}
