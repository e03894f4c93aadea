/** docs/conformance.md, from the result of a run and the table of reasons. Pure. */
import { AREAS, areaOf } from './choice.ts';
import { DIFFERENCES, LAB_FAILURES, LEFT_OUT } from './reasons.ts';
import type { Result } from './score.ts';

const HEAD = `<!-- Made by tools/generate.ts from lab/conformance/result.json (written by make conformance) and lab/conformance/reasons.ts. -->

# Conformance

Kubernetes has an end-to-end suite of its own. \`make conformance\` builds it, makes two peered clusters, and runs the
specs marked \`[Conformance]\` twice: directly on the foreign cluster, and in the home cluster, where the virtual node is
the only node that takes pods and every namespace of the suite is offloaded with the strategy \`Remote\`. The score is the
difference: specs that pass directly and fail through the virtual node. The command fails if a difference has no reason
below.

What is not at its default: the home lets its pods over there reach its ClusterIPs and ask its DNS (\`services\` and \`dns\` under
\`spec.network\` of the ForeignCluster), and its virtual node has no taint (\`taintEffect: None\`); the provider lends all that is free and gives
namespaces their own names where these are free, their images as they ask for them, their own tolerations and ExternalNames
(\`sharePercent\`, \`namespaceNaming\`, \`namespaceNames\`, \`imagePullPolicy\`, \`ownTolerations\`, \`externalNames\`).
`;

export function conformanceDocument(result: Result): string {
  return [HEAD, figures(result), differences(result), others(result), leftOut(result)].join('\n');
}

function figures(result: Result): string {
  const { minutes } = result;
  const columns = ['passed', 'differences', 'betterThrough', 'failedBoth', 'skipped', 'leftOut'] as const;
  const count = (names: readonly string[], area: string): number =>
    names.filter((name) => areaOf(name) === area).length;
  const rows = AREAS.map(
    (area) => `| ${area} | ${columns.map((column) => count(result[column], area)).join(' | ')} |`,
  );
  const sums = columns.map((column) => result[column].length);
  return `## The last run

Kubernetes ${result.kubernetes}, ${result.processes} processes beside each other on ${result.cores} cores: ${minutes.total} minutes in
all, of them ${minutes.direct} for the direct run and ${minutes.through} for the one through the virtual node.

| Area | pass on both | fail only through the virtual node | fail only directly | fail on both | skip themselves on both | left out |
| --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
| all | ${sums.join(' | ')} |

${directly(result)}${again(result)}
`;
}

const directly = (result: Result): string =>
  result.directly === 'all'
    ? ''
    : 'In this run only the specs that had failed through the virtual node ran directly, too; the others count as passed on both.\n\n';

function again({ again: names }: Result): string {
  const rule =
    'Specs that fail for a reason that is not listed here run a second time, with fewer beside them, and that counts: time limits of the suite are made for larger machines.';
  return names.length === 0
    ? `${rule} In this run no spec passed only the second time.`
    : `${rule} These passed then:\n\n${list(names)}`;
}

function differences({ differences: names }: Result): string {
  if (names.length === 0) return '## Differences\n\nNone.\n';
  return `## Differences\n\n${table(names, (name) => DIFFERENCES[name])}`;
}

function others({ betterThrough, failedBoth, skipped }: Result): string {
  const parts = [
    ['Specs that fail on both sides', failedBoth],
    ['Specs that fail directly only', betterThrough],
    ['Specs that skip themselves', skipped],
  ] as const;
  return parts
    .filter(([, names]) => names.length > 0)
    .map(([title, names]) => `## ${title}\n\n${table(names, (name) => LAB_FAILURES[name])}`)
    .join('\n');
}

function leftOut({ leftOut: names }: Result): string {
  const reasonOf = (name: string): string | undefined =>
    LEFT_OUT.find(({ specs }) => specs.test(name))?.reason;
  return `## Left out\n\nThese specs of the same areas are not run.\n\n${table(names, reasonOf)}`;
}

const table = (names: readonly string[], reasonOf: (name: string) => string | undefined): string =>
  [
    '| Spec | Reason |',
    '| --- | --- |',
    ...names.map((name) => `| ${cell(name)} | ${cell(reasonOf(name) ?? 'not known')} |`),
    '',
  ].join('\n');

const list = (names: readonly string[]): string => names.map((name) => `- ${cell(name)}`).join('\n');

/** Names are text, whatever signs they have. */
const cell = (text: string): string => text.replaceAll(/[\\|[\]<>*_]/g, String.raw`\$&`);
