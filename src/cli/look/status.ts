/** `tributary status`: one page on this cluster. */
import { VERSION } from '../../version.ts';
import { painter, type Paint } from '../colours.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { type Format, formatOf, printedAs, WIDE_OUTPUT } from '../output.ts';
import type { Pastable } from '../pastable.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { printable, table } from '../peering/terminal-text.ts';
import type { Notice } from './attention.ts';
import { readFacts } from './facts.ts';
import { pageOf, type StatusPage } from './status-page.ts';
import { type Page, showPage, WATCH } from './watching.ts';

export const statusCommand: Command = clusterCommand({
  name: 'status',
  summary: 'Show on one page how Tributary in this cluster is, and what needs a person.',
  about:
    'Roles, peers, virtual nodes and offloaded namespaces, then what is not as it should be, with the command that shows more, ' +
    'and what waits for you, or for people at another cluster. What you may not read is named, and the rest is shown.',
  options: { ...WIDE_OUTPUT, ...WATCH },
  examples: [
    { line: 'tributary status', does: 'Show this cluster' },
    { line: 'tributary --context milan status --watch', does: 'Keep the page of milan on the terminal' },
  ],
  exits: { [EXIT.failed]: 'something is not as it should be; what only waits for a decision does not count' },
  parse: (line) => ({ format: formatOf(line), isWatched: line.flags.has('watch') }),
  run: async ({ format, isWatched }, session) =>
    showPage(isWatched, session, async () => makePage(format, session)),
});

async function makePage(format: Format, session: Session): Promise<Page> {
  const facts = await readFacts(session);
  const page = withCommands(pageOf(facts, VERSION, session.clock.now()), session.pastable);
  const { io, pastable } = session;
  const text = printedAs(format, page, (isWide) => textOf(page, { paint: painter(io), pastable, isWide }));
  return { text, code: page.isHealthy ? EXIT.ok : EXIT.failed };
}

function withCommands(page: StatusPage, pastable: Pastable): StatusPage {
  const all = (notices: readonly Notice[]): Notice[] =>
    notices.map((one) => ({ ...one, message: pastable(one.message), see: pastable(one.see) }));
  const { problems, waiting, waitingForOthers } = page;
  return {
    ...page,
    problems: all(problems),
    waiting: all(waiting),
    waitingForOthers: all(waitingForOthers),
  };
}

const yes = (is: boolean): string => (is ? 'yes' : 'no');

interface Look {
  paint: Paint;
  pastable: Pastable;
  isWide: boolean;
}

const placesIn = ({ clusters, closed }: StatusPage['namespaces'][number]): string =>
  clusters.map((name) => (closed.includes(name) ? `${name} (closed)` : name)).join(', ');

const virtualNodeRow = (one: StatusPage['virtualNodes'][number]): string[] => [
  one.name,
  one.cluster,
  one.isClosed ? 'closed' : yes(one.isReady),
  one.pods,
  one.cpu,
  one.memory,
];

/** Further columns about peers. */
const WIDE = ['WIREGUARD', 'CLUSTER ID'];

function textOf(page: StatusPage, { paint, pastable, isWide }: Look): string {
  const section = sectionOf(paint);
  const { roles, peers, virtualNodes, namespaces, others } = page;
  const noneOf = noneIn(page);
  const seen = others === 0 ? '' : `\n  ${others} more known: ${pastable('tributary discover')}`;
  return [
    heading(page, paint),
    section(
      'Roles',
      ['ROLE', 'READY', 'NAMESPACE'],
      roles.map(({ role, ready, wanted, isMissing, namespace }) => [
        role === 'all' ? 'all (one process)' : role,
        isMissing ? 'missing' : `${ready}/${wanted}`,
        namespace,
      ]),
      noneOf(['deployments', 'daemonsets'], 'none in this cluster that you can see'),
    ),
    section(
      'Peers',
      ['NAME', 'CLUSTER', 'OUTGOING', 'INCOMING', 'LINK', 'RTT', 'LOSS', ...(isWide ? WIDE : [])],
      peers.map((peer) => [
        peer.name,
        peer.clusterName === '' ? '-' : peer.clusterName,
        peer.outgoing,
        peer.incoming,
        peer.link ? 'up' : 'down',
        peer.rttMs === undefined ? '-' : `${peer.rttMs} ms`,
        peer.lossPercent === undefined ? '-' : `${peer.lossPercent} %`,
        ...(isWide ? [peer.wireguard ?? '-', peer.clusterID] : []),
      ]),
      noneOf(['foreignclusters'], pastable('none; peer with a cluster: tributary peer --help')),
    ).trimEnd() + `${seen}\n`,
    section(
      'Virtual nodes',
      ['NAME', 'CLUSTER', 'READY', 'PODS', 'CPU', 'MEMORY'],
      virtualNodes.map(virtualNodeRow),
      noneOf(['virtualnodes'], 'none'),
    ),
    section(
      'Offloaded namespaces',
      ['NAME', 'STRATEGY', 'READY', 'IN', 'AT HOME', 'ABROAD', 'WAITING'],
      namespaces.map((one) => [
        one.name,
        one.strategy,
        yes(one.isReady),
        placesIn(one),
        ...[one.atHome, one.abroad, one.waiting].map(String),
      ]),
      noneOf(['namespaceoffloadings'], pastable('none; offload one: tributary offload NAMESPACE')),
    ),
    notices('Problems', page.problems, (title) => paint('red', title)),
    notices('Waits for you', page.waiting, (title) => paint('yellow', title)),
    ...[...Map.groupBy(page.waitingForOthers, ({ waitsFor = '' }) => waitsFor)].map(([name, all]) =>
      notices(`Waits for ${printable(name)}`, all, (title) => paint('bold', title)),
    ),
    unread(page),
  ].join('');
}

const sectionOf =
  (paint: Paint) =>
  (title: string, head: readonly string[], rows: readonly string[][], none: string): string => {
    const body = rows.length === 0 ? `${none}\n` : table(head, rows);
    return `\n${paint('bold', title)}\n${body.replaceAll(/^/gm, '  ').replace(/ +$/, '')}`;
  };

/** What may not be read is not said to be none. */
function noneIn({ unreadable }: StatusPage): (plurals: readonly string[], none: string) => string {
  const hidden = new Set(unreadable.map(({ what }) => what));
  return (plurals, none) =>
    plurals.some((plural) => hidden.has(plural)) ? 'unknown: they cannot be read, see below' : none;
}

function heading(
  { version, clusterID, clusterName, mode, isHealthy, problems, unreadable }: StatusPage,
  paint: Paint,
): string {
  const seen =
    unreadable.length === 0
      ? paint('green', 'healthy')
      : paint('yellow', `no problem in what can be read; ${unreadable.length} part(s) cannot, below`);
  const state = isHealthy ? seen : paint('red', `${problems.length} problem(s), below`);
  const name = printable(clusterName ?? 'this cluster');
  const id = clusterID === undefined ? '' : ` (${clusterID})`;
  return `${name}${id}: ${state}; tributary ${version}\n${mode === undefined ? '' : `${printable(mode)}\n`}`;
}

function notices(title: string, all: readonly Notice[], paint: (title: string) => string): string {
  if (all.length === 0) return '';
  const lines = all.map(
    ({ about, message, see }) => `  ${printable(`${about}: ${message}`)}\n    ${printable(see)}\n`,
  );
  return `\n${paint(title)}\n${lines.join('')}`;
}

function unread({ unreadable }: StatusPage): string {
  if (unreadable.length === 0) return '';
  const lines = unreadable.map(({ what, why }) => `  ${printable(`${what}: ${why}`)}\n`);
  return `\nNot shown, since it cannot be read\n${lines.join('')}`;
}
