/** P4: one object at a time, made or changed at home, until it is seen over there. */
import { readFileSync } from 'node:fs';

import { services } from '../../src/api/resources.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import type { Bench, Found, Goal, Measured } from '../frame/bench.ts';
import { percentile } from '../frame/statistics.ts';
import { Bed, type ClusterName, tenantOf, type Version, versionsOf } from './bed.ts';
import { MarkWatch } from './mark-watch.ts';
import { asCopy, service, SERVICE, SINGLE_KINDS, type SingleKind } from './single-objects.ts';

interface Place {
  readonly cluster: ClusterName;
  readonly namespace: string;
}

/** Where nobody copies anything: at home, and in a tenant. */
const FLOORS: readonly [Place, Place] = [
  { cluster: 'home', namespace: 'null' },
  { cluster: 'foreign', namespace: tenantOf('null') },
];
const from = (program: Version): Place => ({ cluster: 'home', namespace: program });
const to = (program: Version): Place => ({ cluster: 'foreign', namespace: tenantOf(program) });

/** Milliseconds, in the order of their turns. */
interface Times {
  readonly created: number[];
  readonly changed: number[];
}

interface Round {
  readonly programs: readonly { readonly name: Version; readonly times: Times }[];
  /** At home, and over there. */
  readonly floors: readonly [Times, Times];
}

type Results = ReadonlyMap<SingleKind['name'], readonly Round[]>;

export const singleBench: Bench<{ objects: number; warmUp: number }> = {
  name: 'single',
  title: 'one object at a time, until it is seen over there',
  what:
    'One ConfigMap, Secret (1 KiB each), Service or EndpointSlice (100 endpoints) at a time is made at home, and then changed, while nothing ' +
    'else happens: how long until a watch over there shows it. ConfigMaps and Secrets travel by the rule `All`. The **floor** is the same ' +
    'object written and watched in a namespace of home that nobody copies, plus the same in a tenant over there, written with the same rights and ' +
    'under the same policies: two hops, and no program between them. All take turns, object by object.',
  parameters: { objects: 30, warmUp: 10 },
  limits: { warmUp: { least: 0 } },
  run: async ({ parameters, rounds, say, nodeFlags, before }) => {
    const programs = versionsOf(before);
    const bed = await Bed.up({
      name: 'bench-single',
      progress: say,
      nodeFlags,
      before,
      network: true,
      reflection: [
        { resource: 'configmaps', policy: 'All' },
        { resource: 'secrets', policy: 'All' },
      ],
    });
    const peer = createClient(await parseKubeconfig(readFileSync(bed.tenantKubeconfig, 'utf8')));
    try {
      await bed.startAgent();
      if (before !== undefined) await bed.startBefore();
      for (const { cluster, namespace } of [...programs.map(from), ...FLOORS])
        await bed.clients[cluster].create(services, service({ name: SERVICE, namespace }, 0));
      await bed.quiet();
      const results = new Map<SingleKind['name'], Round[]>(SINGLE_KINDS.map(({ name }) => [name, []]));
      for (const kind of SINGLE_KINDS) await oneRound(bed, { peer, kind, programs }, parameters.warmUp);
      for (let round = 1; round <= rounds; round++) {
        for (const kind of SINGLE_KINDS) {
          const found = await oneRound(bed, { peer, kind, programs }, parameters.objects);
          results.get(kind.name)?.push(found);
          say(`round ${round}, ${kind.name}: ${ratioOf(found).toFixed(2)} of the floor`);
        }
      }
      return foundOf(results);
    } finally {
      await peer.close();
      await bed.down();
    }
  },
};

async function oneRound(
  bed: Bed,
  { peer, kind, programs }: { peer: KubeClient; kind: SingleKind; programs: readonly Version[] },
  count: number,
): Promise<Round> {
  const { home } = bed.clients;
  const turn = async (client: KubeClient, place: Place, shownAt = place): Promise<Turn> => ({
    client,
    make: (name, mark) => {
      const object = kind.make({ name, namespace: place.namespace }, mark);
      return client === peer ? asCopy(object, from('agent').namespace) : object;
    },
    seenAs: shownAt === place ? (name) => name : kind.remoteName,
    watch: await MarkWatch.start(bed, kind, shownAt),
    times: { created: [], changed: [] },
  });
  const [here, there] = FLOORS;
  const [first, second] = [await turn(home, here), await turn(peer, there)];
  const mirrors: { name: Version; turn: Turn }[] = [];
  for (const name of programs) mirrors.push({ name, turn: await turn(home, from(name), to(name)) });
  const turns = [first, second, ...mirrors.map(({ turn: one }) => one)];
  try {
    for (let index = 0; index < count; index++)
      for (const each of turns) await once(kind, `single-${index}`, each);
    return {
      programs: mirrors.map(({ name, turn: { times } }) => ({ name, times })),
      floors: [first.times, second.times],
    };
  } finally {
    await Promise.all(turns.map(async ({ watch }) => watch.stop()));
  }
}

/** Who makes objects, how, and who tells when they are seen, under which name. */
interface Turn {
  readonly client: KubeClient;
  readonly make: (name: string, mark: number) => KubeObject;
  readonly seenAs: (name: string) => string;
  readonly watch: MarkWatch;
  readonly times: Times;
}

/** Makes an object, changes it, and removes it again. */
async function once(
  { type }: SingleKind,
  name: string,
  { client, make, seenAs, watch, times }: Turn,
): Promise<void> {
  const seen = seenAs(name);
  const draft = make(name, 1);
  let made: KubeObject | undefined;
  times.created.push(await watch.timed(seen, 1, async () => (made = await client.create(type, draft))));
  const next = { ...made, ...make(name, 2), metadata: made?.metadata ?? draft.metadata };
  times.changed.push(await watch.timed(seen, 2, async () => client.replace(type, next)));
  await client.delete(type, draft.metadata);
  await watch.gone(seen);
}

const STEPS = ['created', 'changed'] as const;
const p50 = (times: readonly number[]): number => percentile(times, 0.5);
const floorOf = ({ floors }: Round, step: keyof Times): number =>
  floors.reduce((sum, times) => sum + p50(times[step]), 0);
const timesOf = ({ programs }: Round, name: Version): Times =>
  programs.find((one) => one.name === name)?.times ?? { created: [], changed: [] };
/** Of both steps together. */
const ratioOf = (round: Round): number =>
  STEPS.reduce((sum, step) => sum + p50(timesOf(round, 'agent')[step]), 0) /
  STEPS.reduce((sum, step) => sum + floorOf(round, step), 0);

function foundOf(results: Results): Found {
  const measured = [...results].flatMap(([kind, rounds]) =>
    STEPS.flatMap((step): Measured[] => {
      const figure = (share: string): string => `${kind} ${step}, ms, ${share}`;
      const names = rounds[0]?.programs.map(({ name }) => name) ?? [];
      const of = (contender: Version, share: 'p50' | 'p99', quantile: number): Measured => ({
        contender,
        figure: figure(share),
        values: rounds.map((round) => percentile(timesOf(round, contender)[step], quantile)),
      });
      return [
        ...names.map((name) => of(name, 'p50', 0.5)),
        { contender: 'floor', figure: figure('p50'), values: rounds.map((round) => floorOf(round, step)) },
        ...names.map((name) => of(name, 'p99', 0.99)),
      ];
    }),
  );
  const goals = [...results].map(([kind, rounds]): Goal => ({
    id: `P4-${kind.toLowerCase()}`,
    what: `${kind} created and changed, p50 of the floor’s`,
    values: rounds.map(ratioOf),
    atMost: 1.5,
  }));
  return { measured, goals };
}
