/**
 * What `make test` runs, and in which order. Four lanes keep two cores busy; the next part begins as soon as
 * there are lanes for it. Most end-to-end files wait (for nodes that are lost, certificates that are renewed) while other
 * parts compute.
 */
import { globSync } from 'node:fs';
import { basename, dirname } from 'node:path';

import type { SetupStage } from './background-setup.ts';

export type Suite = 'unit' | 'integration' | 'e2e';
export type Stage = 'check' | Suite;
export const STAGES: readonly Stage[] = ['check', 'unit', 'integration', 'e2e'];

/** What runs as one: a Jest process over some files of a suite, or the check. */
export interface Part {
  readonly name: string;
  readonly stage: Stage;
  readonly files: readonly string[];
  /** Arguments of Jest. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How much of the machine it takes, as long as it runs: one for each worker. */
  readonly lanes: number;
  /** What must have been built. */
  readonly needs?: SetupStage;
}

/** Files by suite, each in the order of their paths. */
export type Files = Readonly<Record<Suite, readonly string[]>>;

/**
 * Only in long runs: reading all documents takes longer than all other end-to-end tests of a run; compiling helm takes longer than what
 * it is asked; two versions beside each other, and an upgrade of what runs, matter where what clusters say to each other changes, and
 * with a release; kills of tethers are a part of `make faults`, as is the suite of faults itself (`faults` and `auditor` try its parts);
 * a tether that is lost is tried by `tether` in each run, and what then runs on the device by unit tests; kills of an agent of real
 * containers are tried on control planes in each run, as are API servers that are away, credentials that are revoked, what a policy
 * offers, and namespaces that are stretched (`network` stretches one over real clusters); etcds that were restored are tried by unit
 * tests of the provider and of informers; how fast many pods are is for `make bench`; clusters with two gateways each, and DNS of home
 * over there, need a lab of their own that costs a seventh of all other tests; the others wait most of the time, and control planes, or
 * a network without nodes, try what matters in each run.
 */
const LONG_RUNS = [
  'test/e2e/documents/',
  'test/e2e/kubelet/crash.test.ts',
  'test/e2e/kubelet/outage.test.ts',
  'test/e2e/network/api-server.test.ts',
  'test/e2e/network/cluster-ips.test.ts',
  'test/e2e/network/namespaces.test.ts',
  'test/e2e/peers/away.test.ts',
  'test/e2e/peers/drain.test.ts',
  'test/e2e/peers/partition.test.ts',
  'test/e2e/peers/peering-terms.test.ts',
  'test/e2e/peers/upgrade.test.ts',
  'test/e2e/underlay/',
  'test/integration/fault-suite.test.ts',
  'test/integration/helm.test.ts',
  'test/integration/restored.test.ts',
  'test/integration/scale.test.ts',
  'test/integration/stand-alone.test.ts',
  'test/integration/tether-kills.test.ts',
  'test/integration/tether-local.test.ts',
  'test/integration/tether-refused.test.ts',
  'test/integration/tether-sleep.test.ts',
  'test/integration/versions.test.ts',
];

/** As test/support/long.ts reads it. */
export const isLongRun = (): boolean => process.env['TRIBUTARY_TEST_LONG'] === '1';

export const filesOf = (suite: Suite, isLong: boolean = isLongRun()): string[] =>
  globSync(`test/${suite}/**/*.test.ts`)
    .filter((path) => isLong || !LONG_RUNS.some((begin) => path.startsWith(begin)))
    .toSorted();

/**
 * Integration files by what they need. Files on control planes borrow them, in six parts that may run beside each other. Files of whole
 * peerings borrow two clusters on a network, one file after another; of the others, each has its own network.
 */
const NEEDS = {
  'on control planes': 'clusters',
  'of whole peerings': 'everything',
  'with networks': 'everything',
} as const;
type Kind = keyof typeof NEEDS;

function kindOf(path: string): Kind {
  if (
    /\/integration\/(doctor\.|first-moment|namespaces-peering|network-exchange|offered-services\.|peering-(ends|found|links)|versions)/.test(
      path,
    )
  )
    return 'of whole peerings';
  return /\/integration\/(api-server-plane|doctor-network|lan-|network-|offered-services-plane)/.test(path)
    ? 'with networks'
    : 'on control planes';
}

/** Folders of test/e2e that take long; all others come after them. */
const LONG = ['peers', 'documents', 'network', 'kubelet', 'underlay'] as const;

/**
 * All parts of the requested stages, in the order in which they begin. Parts that take long or wait a lot come early; four alike come
 * last, one for each lane, so that none is left to run alone.
 */
export function partsOf(stages: ReadonlySet<Stage>, files: Files): Part[] {
  const only = (one: (typeof LONG)[number]): Part[] => endToEnd(files.e2e, (folder) => folder === one);
  const onPlanes = inParts(integration(files.integration, 'on control planes'), 6);
  const parts = [
    CHECK,
    ...only('peers'),
    ...only('documents'),
    integration(files.integration, 'of whole peerings'),
    // Until then programs are built on a new machine.
    unit(files.unit),
    // Their programs are built first.
    ...onPlanes.slice(0, 2),
    ...only('network'),
    ...only('kubelet'),
    ...only('underlay'),
    integration(files.integration, 'with networks'),
    ...endToEnd(files.e2e, (folder) => !LONG.some((one) => one === folder)),
    ...onPlanes.slice(2),
  ];
  return parts.filter(({ stage, files: its }) => stages.has(stage) && (stage === 'check' || its.length > 0));
}

const CHECK: Part = {
  name: 'check (format, lint, types, generated files)',
  stage: 'check',
  files: [],
  args: [],
  lanes: 1,
};

const unit = (files: readonly string[]): Part => ({
  name: 'unit tests',
  stage: 'unit',
  files,
  args: ['--maxWorkers=2'],
  lanes: 2,
});

const integration = (files: readonly string[], kind: Kind): Part => ({
  name: `integration tests ${kind}`,
  stage: 'integration',
  files: files.filter((path) => kindOf(path) === kind),
  args: ['--runInBand'],
  lanes: 1,
  needs: NEEDS[kind],
});

/** Files by turns, since those of one subject, next to each other, take alike. */
const inParts = (part: Part, count: number): Part[] =>
  Array.from({ length: count }, (_, which) => ({
    ...part,
    name: `${part.name}, ${which + 1} of ${count}`,
    files: part.files.filter((_path, index) => index % count === which),
  }));

/** Of the last minute, for each core. Where all is well it is below ten. */
const OVERWHELMED_LOAD = 12;

/**
 * Whether no other part begins, although there are lanes: on a slow machine clusters that only wait take a core, and then tests end by
 * their deadlines. Two parts always go on.
 *
 * @param load processes that run or want to, as the kernel counts them over a minute
 */
export const isOverwhelmed = (parts: number, load: number, cores: number): boolean =>
  parts >= 2 && load > OVERWHELMED_LOAD * cores;

/** A part for each folder: its files share clusters (test/support/e2e/lab.ts). */
function endToEnd(files: readonly string[], isWanted: (folder: string) => boolean): Part[] {
  const folderOf = (path: string): string => basename(dirname(path));
  return [...new Set(files.map(folderOf))].filter(isWanted).map((folder) => ({
    name: `end-to-end tests, ${folder}`,
    stage: 'e2e',
    files: files.filter((path) => folderOf(path) === folder),
    args: ['--runInBand'],
    lanes: 1,
    env: { TRIBUTARY_E2E_FOLDER: folder },
    needs: 'everything',
  }));
}
