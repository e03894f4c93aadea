/** What each offloaded namespace costs an agent: memory, CPU, connections, and the time until all of them work. */
import { MAX_NAMESPACES } from '../../src/api/limits.ts';
import { pods, namespaces as namespaceType } from '../../src/api/resources.ts';
import { TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { Bench, Found } from '../frame/bench.ts';
import type { ProcessFigures } from '../frame/process-figures.ts';
import { Bed, tenantOf } from './bed.ts';
import { agentContender, type Mirror } from './contender.ts';
import { isReady } from './readiness.ts';

/** Steps by which the number grows, as shares of the largest. */
const SHARES = [0.1, 0.4, 1];
const TIMEOUT_MS = 600_000;
const QUOTA = 'cpu=10,memory=10Gi,pods=10';
/** What the last step may cost for each namespace, in what the first costs: more would be faster than linear. */
const MOST_GROWTH = 1.25;
const IDLE_MS = 20_000;

/** With so many namespaces, each with one pod. */
interface Step {
  readonly namespaces: number;
  /** From the order to the last pod that is Ready at home, for those namespaces that this step adds. */
  readonly addMs: number;
  readonly addCpuMs: number;
  readonly added: number;
  readonly idleCpuShare: number;
  readonly figures: ProcessFigures;
}

export const namespacesBench: Bench<{ namespaces: number }> = {
  name: 'namespaces',
  title: 'many offloaded namespaces of one virtual node',
  what:
    'Namespaces with one pod each are added to one virtual node in three steps, and the agent rests between them. An agent may watch only ' +
    'the namespaces that it was given, so each one has watches of its own.',
  parameters: { namespaces: 250 },
  // The first step is a tenth, and a VirtualNode has no more.
  limits: { namespaces: { least: 10, most: MAX_NAMESPACES } },
  run: async ({ parameters, rounds, say, nodeFlags }) => {
    const runs: Step[][] = [];
    for (let round = 1; round <= rounds; round++) {
      const bed = await Bed.up({ name: 'bench-spaces', nodeFlags });
      try {
        runs.push(await grow(bed, parameters.namespaces, say));
      } finally {
        await bed.down();
      }
    }
    return found(runs);
  },
};

async function grow(bed: Bed, most: number, say: (line: string) => void): Promise<Step[]> {
  const agent = await agentContender(bed);
  const steps: Step[] = [];
  let names: string[] = [];
  for (const count of SHARES.map((share) => Math.round(most * share))) {
    const fresh = Array.from({ length: count - names.length }, (_, index) => `many-${names.length + index}`);
    await furnish(bed, fresh);
    await bed.quiet();
    const before = agent.program.figures;
    const began = performance.now();
    names = [...names, ...fresh];
    await offload(bed, agent, names);
    await Promise.all(fresh.map(async (name) => runPod(bed, agent, name)));
    await allReady(bed, fresh);
    const addMs = performance.now() - began;
    const addCpuMs = agent.program.figures.cpuMs - before.cpuMs;
    await bed.quiet();
    const idleCpuShare = await idle(bed, agent);
    const step = { namespaces: count, addMs, addCpuMs, added: fresh.length, idleCpuShare };
    steps.push({ ...step, figures: agent.program.figures });
    say(`${count} namespaces: ${(addMs / 1000).toFixed(1)} s for ${fresh.length} more`);
  }
  return steps;
}

/** Namespaces on both sides, with what the product gives a tenant. */
export async function furnish(bed: Bed, names: readonly string[]): Promise<void> {
  bed.lend(names, QUOTA);
  for (const name of names) await bed.clients.home.create(namespaceType, { metadata: { name } });
  const last = names.at(-1) ?? '';
  await bed.until('the account of the last namespace', TIMEOUT_MS, async () => {
    const account = (namespace: string): string => `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
    const there = await bed.cluster('foreign').api.get(account(tenantOf(last)));
    return there !== undefined && (await bed.cluster('home').api.get(account(last))) !== undefined;
  });
}

export async function offload(bed: Bed, { node }: Mirror, names: readonly string[]): Promise<void> {
  const mappings = names.map((name) => ({ homeNamespace: name, tenantNamespace: tenantOf(name) }));
  const body = { spec: { namespaces: mappings } };
  await bed.clients.home.patch(virtualNodes, { name: node }, { type: 'merge', body });
}

export const runPod = async (bed: Bed, { node }: Mirror, namespace: string): Promise<unknown> =>
  bed.clients.home.create(pods, {
    metadata: { name: 'one', namespace, labels: { app: 'many' } },
    spec: {
      nodeName: node,
      tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
      containers: [{ name: 'main', image: 'example.org/none:1', resources: { requests: { cpu: '10m' } } }],
    },
  });

export async function allReady(bed: Bed, names: readonly string[]): Promise<void> {
  const wanted = new Set(names);
  await bed.until(`pods of ${names.length} more namespaces Ready`, TIMEOUT_MS, async () => {
    const { items } = await bed.clients.home.list(pods, { labelSelector: 'app=many' });
    return (
      items.filter((pod) => wanted.has(pod.metadata.namespace ?? '') && isReady(pod)).length === names.length
    );
  });
}

/** Of a core. */
async function idle(bed: Bed, { program }: Mirror): Promise<number> {
  const [cpuMs, began] = [program.figures.cpuMs, performance.now()];
  await bed.until('time at rest', IDLE_MS * 2, () => performance.now() - began > IDLE_MS);
  return (program.figures.cpuMs - cpuMs) / (performance.now() - began);
}

const FIGURES: readonly (readonly [figure: string, of: (step: Step) => number, digits: number])[] = [
  ['ms for each namespace that is added', ({ addMs, added }) => addMs / added, 1],
  ['own CPU ms for each', ({ addCpuMs, added }) => addCpuMs / added, 1],
  ['private MiB', ({ figures }) => figures.privateMiB, 0],
  ['RSS MiB', ({ figures }) => figures.rssMiB, 0],
  ['sockets', ({ figures }) => figures.sockets, 0],
  ['CPU at rest, % of a core', ({ idleCpuShare }) => idleCpuShare * 100, 2],
];

function found(runs: readonly (readonly Step[])[]): Found {
  const counts = runs[0]?.map(({ namespaces }) => namespaces) ?? [];
  const at = (index: number, of: (step: Step) => number): number[] =>
    runs.flatMap((steps) => steps.slice(index, index + 1).map(of));
  const measured = FIGURES.flatMap(([figure, of, digits]) =>
    counts.map((count, index) => ({ contender: `${count}`, figure, values: at(index, of), digits })),
  );
  const growth = (of: (step: Step) => number): number[] =>
    runs.map((steps) => of(steps.at(-1) as Step) / of(steps[0] as Step));
  const first = runs[0] ?? [];
  return {
    measured,
    goals: [
      {
        id: 'scale-namespaces-cpu',
        what: 'CPU for each namespace with all of them, of that with a tenth',
        values: growth(({ addCpuMs, added }) => addCpuMs / added),
        atMost: MOST_GROWTH,
      },
      {
        id: 'scale-namespaces-memory',
        what: 'private KiB for each further namespace',
        values: runs.map((steps) => perNamespaceKiB(steps[0] as Step, steps.at(-1) as Step)),
        atMost: 300,
        digits: 0,
      },
    ],
    curves: [
      {
        title: 'Namespaces',
        x: 'namespaces of one virtual node',
        y: 'private MiB of the agent',
        lines: [{ name: 'agent', points: first.map((step) => [step.namespaces, step.figures.privateMiB]) }],
      },
    ],
  };
}

const perNamespaceKiB = (few: Step, many: Step): number =>
  ((many.figures.privateMiB - few.figures.privateMiB) * 1024) / (many.namespaces - few.namespaces);
