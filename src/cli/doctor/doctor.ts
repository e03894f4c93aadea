/** `tributary doctor`: what is wrong with the peerings of a cluster, and what to do about it. */
import { examine, isKnown } from '../../doctor/examine.ts';
import { itemsOf } from '../../doctor/facts.ts';
import { exitCodeOf, type Finding, type Level } from '../../doctor/finding.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import type { Pastable } from '../pastable.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { findCluster } from '../peering/foreign-clusters.ts';
import { printable } from '../peering/terminal-text.ts';
import { gatherFacts } from './gather.ts';

interface DoctorArguments {
  peer: string | undefined;
  format: ReturnType<typeof formatOf>;
  /** Also what is in order. */
  all: boolean;
}

export const doctorCommand: Command = clusterCommand({
  name: 'doctor',
  summary: 'Find out what is wrong with peerings, and what to do about it.',
  about:
    'It reads with your own rights and changes nothing. Each line says what was tried and what came back; below it stands what to ' +
    'do and, where one command does it, that command. What could not be looked at is unknown, and the line says why.',
  arguments: [
    {
      name: 'PEER',
      text: 'only this peer, and this cluster itself: name of a ForeignCluster, ClusterID or name of the cluster',
      isOptional: true,
      names: 'foreignclusters',
    },
  ],
  options: { ...OUTPUT, all: { text: 'show also what is in order' } },
  examples: [
    { line: 'tributary doctor', does: 'Looks at everything' },
    { line: 'tributary doctor milan --all', does: 'Shows each check of one peer' },
  ],
  exits: { 1: 'a problem was found, or nothing could be asked' },
  parse: (line): DoctorArguments => ({
    peer: line.positionals[0],
    format: formatOf(line),
    all: line.flags.has('all'),
  }),
  run: runDoctor,
});

async function runDoctor({ peer, format, all }: DoctorArguments, session: Session): Promise<number> {
  const facts = await gatherFacts(session);
  if (peer !== undefined && !isKnown(facts, peer)) findCluster(itemsOf(facts.lists.foreignClusters), peer);
  const findings = examine(facts, peer).map((finding) => pastableFinding(finding, session.pastable));
  session.io.out(printedAs(format, { findings }, () => report(findings, all)));
  return exitCodeOf(findings) === 0 ? EXIT.ok : EXIT.failed;
}

const pastableFinding = ({ remedy, run, ...said }: Finding, pastable: Pastable): Finding => ({
  ...said,
  ...(remedy !== undefined && { remedy: pastable(remedy) }),
  ...(run !== undefined && { run: pastable(run) }),
});

const MARKS: Readonly<Record<Level, string>> = {
  ok: 'ok',
  warning: 'warning',
  problem: 'PROBLEM',
  unknown: 'unknown',
};

/** One line a finding; under it what to do. */
export function report(findings: readonly Finding[], all: boolean): string {
  const shown = all ? findings : findings.filter(({ level }) => level !== 'ok');
  const lines = shown.flatMap(({ level, check, subject, tried, cameBack, remedy, run }) => [
    `${MARKS[level].padEnd(8)}${check}, ${printable(subject)}: ${printable(tried)}: ${printable(cameBack)}`,
    ...(remedy === undefined ? [] : [`        do: ${printable(remedy)}`]),
    ...(run === undefined ? [] : [`        run: ${printable(run)}`]),
  ]);
  const count = (wanted: Level): number => findings.filter(({ level }) => level === wanted).length;
  const counted = (wanted: Level): string => `${count(wanted)} ${wanted}${count(wanted) === 1 ? '' : 's'}`;
  const summary = `${findings.length} checks: ${count('ok')} ok, ${counted('warning')}, ${counted('problem')}, ${count('unknown')} unknown`;
  return [...lines, summary, ''].join('\n');
}
