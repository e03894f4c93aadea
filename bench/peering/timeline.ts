/** What happens between the request of a person and the Ready node, as the API servers of both clusters tell of it. */
import type { ForeignCluster } from '../../src/api/foreign-cluster.ts';
import { nodes } from '../../src/api/resources.ts';
import type { Condition } from '../../src/api/wire.ts';
import { WriteWatch, type Write } from '../../test/integration/support/write-watch.ts';
import { PEER, type PeeringBed } from './bed.ts';

type Test = (write: Write) => boolean;

const made =
  (city: string, kind: string, name?: string): Test =>
  (write) =>
    write.city === city &&
    write.kind === kind &&
    write.type === 'ADDED' &&
    (name === undefined || write.object.metadata.name === name);
const phase =
  (city: string, direction: 'outgoing' | 'incoming', wanted: string): Test =>
  (write) =>
    write.city === city && write.kind === 'ForeignCluster' && write.phases?.[direction] === wanted;
const isReady = ({ object }: Write): boolean => {
  const { conditions = [] } = (object as { status?: { conditions?: Condition[] } }).status ?? {};
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
};

/** In the order of the protocol; the last one ends a round. */
export const STEPS: readonly (readonly [name: string, test: Test])[] = [
  [
    'linked',
    (write) => write.city === 'rome' && (write.object as ForeignCluster).status?.link?.connected === true,
  ],
  ['request in milan', made('milan', 'PeeringRequest')],
  ['offer in rome', made('rome', 'Advertisement')],
  ['accepted in milan', phase('milan', 'incoming', 'Accepted')],
  ['established in milan', phase('milan', 'incoming', 'Established')],
  ['credential in rome', made('rome', 'Secret')],
  ['VirtualNode', made('rome', 'VirtualNode')],
  ['Node', made('rome', 'Node', PEER)],
  [
    'Node Ready',
    (write) =>
      write.city === 'rome' && write.kind === 'Node' && write.object.metadata.name === PEER && isReady(write),
  ],
];
export const LAST = 'Node Ready';

/** Milliseconds after the request, by step. */
export type Timeline = ReadonlyMap<string, number>;

export class Watched {
  readonly #watch: WriteWatch;
  #began = 0;
  #seen = new Map<string, number>();

  private constructor(watch: WriteWatch) {
    this.#watch = watch;
    watch.each((write) => {
      const ms = performance.now() - this.#began;
      for (const [name, test] of STEPS) if (!this.#seen.has(name) && test(write)) this.#seen.set(name, ms);
    });
  }

  static async start({ clients }: PeeringBed): Promise<Watched> {
    const cities = Object.entries(clients).map(([name, client]) => ({ name, client }));
    return new Watched(await WriteWatch.start(cities, [nodes]));
  }

  async peer(bed: PeeringBed): Promise<Timeline> {
    this.#began = performance.now();
    this.#seen = new Map();
    const ready = this.#watch.first((write) => STEPS.at(-1)?.[1](write) === true);
    // Awaited below; a request that fails comes first.
    ready.catch(() => undefined);
    await bed.ask();
    await ready;
    return this.#seen;
  }

  async stop(): Promise<void> {
    await this.#watch.stop();
  }
}
