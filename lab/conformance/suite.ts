/** Runs Kubernetes' end-to-end suite with several processes beside each other, and reads its report. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { Program } from '../demo/program.ts';
import { LABELS } from './choice.ts';
import { exactly, specsOf, suiteFailure, type GinkgoReport, type Spec } from './specs.ts';

export interface SuiteOptions {
  readonly programs: Readonly<Record<'e2e' | 'ginkgo' | 'kubectl', string>>;
  /** An empty folder for reports and caches. */
  readonly directory: string;
  readonly kubeconfig: string;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

export interface Run {
  /** Names the report. */
  readonly title: string;
  readonly processes: number;
  /** Run these and no others; otherwise all of [Conformance] but `skip`. */
  readonly focus?: readonly string[];
  readonly skip?: readonly string[];
  readonly timeoutMinutes: number;
}

const MINUTE_MS = 60_000;
const LIST_TIMEOUT_MS = 2 * MINUTE_MS;

/** All specs that the suite has; nothing is run, and no cluster is asked. */
export async function listSpecs(options: SuiteOptions): Promise<Spec[]> {
  const report = join(options.directory, 'list.json');
  const flags = ['--ginkgo.dry-run', '--ginkgo.no-color', `--ginkgo.json-report=${report}`];
  await completed([options.programs.e2e, ...flags, ...suiteFlags(options)], options, LIST_TIMEOUT_MS);
  return specsOf(reportOf(report));
}

/** Specs that fail are in the result; that the suite itself cannot run is an error. */
export async function runSpecs(options: SuiteOptions, run: Run): Promise<Spec[]> {
  const { directory, programs } = options;
  const report = `${run.title}.json`;
  // ginkgo knows a suite that has been built by the end of its name.
  const suite = join(directory, `${run.title}.test`);
  symlinkSync(programs.e2e, suite);
  const command: [string, ...string[]] = [
    programs.ginkgo,
    'run',
    '--no-color',
    '--keep-going',
    `--procs=${run.processes}`,
    `--label-filter=${LABELS}`,
    ...(run.focus ?? []).map((name) => `--focus=${exactly(name)}`),
    ...(run.skip ?? []).map((name) => `--skip=${exactly(name)}`),
    `--json-report=${report}`,
    `--output-dir=${directory}`,
    `--timeout=${run.timeoutMinutes}m`,
    suite,
    '--',
    ...suiteFlags(options),
  ];
  const progress = (line: string): void => options.progress(`${run.title}: ${line}`);
  await completed(command, { ...options, progress }, (run.timeoutMinutes + 1) * MINUTE_MS);
  const reports = reportOf(join(directory, report));
  const failure = suiteFailure(reports);
  if (failure !== undefined) throw new Error(`the suite could not run (${run.title}): ${failure}`);
  return specsOf(reports);
}

const suiteFlags = ({ kubeconfig, programs }: SuiteOptions): string[] => [
  `--kubeconfig=${kubeconfig}`,
  '--provider=skeleton',
  `--kubectl-path=${programs.kubectl}`,
  // The home's own node is cordoned, and the suite shall not wait for it.
  '--allowed-not-ready-nodes=-1',
  '--disable-log-dump',
  '--dump-logs-on-failure=false',
];

/** Runs it to its end, and says now and then how far it is. Exit code 1 only says that specs failed. */
async function completed(
  command: readonly [string, ...string[]],
  { directory, signal, progress }: SuiteOptions,
  timeoutMs: number,
): Promise<void> {
  const home = join(directory, 'home');
  mkdirSync(home, { recursive: true });
  const env = { HOME: home, KUBECACHEDIR: join(home, 'kube-cache') };
  const program = Program.start(command, { env, timeoutMs, signal });
  const report = (): void => progress(`${program.stdout.match(/•/g)?.length ?? 0} specs have ended`);
  const timer = setInterval(report, MINUTE_MS);
  try {
    const { code, stdout, stderr } = await program.ended;
    if (code > 1) throw new Error(`${command[0]} ended with ${code}: ${(stderr + stdout).slice(-1_500)}`);
  } finally {
    clearInterval(timer);
  }
}

const reportOf = (path: string): GinkgoReport[] => JSON.parse(readFileSync(path, 'utf8')) as GinkgoReport[];
