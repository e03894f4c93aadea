/**
 * Watches pods until so many events have come, and prints what that has cost as JSON (`Cost`).
 *
 *     node bench/watch/reader.ts ours|client-node KUBECONFIG EVENTS
 */
import { readFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Of one reader, from its first request to the last event. */
export interface Cost {
  readonly cpuMs: number;
  readonly peakMiB: number;
  /** The longest that the event loop was not free. */
  readonly stallMs: number;
}

type Reader = (kubeconfig: string, events: number) => Promise<void>;

const READERS: Readonly<Record<string, () => Promise<Reader>>> = {
  ours: async () => {
    const [{ createClient }, { parseKubeconfig }, { pods }] = await Promise.all([
      import('../../src/kube/http-client.ts'),
      import('../../src/kube/kubeconfig.ts'),
      import('../../src/api/resources.ts'),
    ]);
    return async (kubeconfig, events) => {
      const client = createClient(await parseKubeconfig(await readFile(kubeconfig, 'utf8')));
      const signal = new AbortController().signal;
      let seen = 0;
      for await (const event of client.watch(pods, { resourceVersion: '1', signal })) {
        if (event.type !== 'BOOKMARK' && event.object.metadata.name !== '') seen++;
        if (seen === events) break;
      }
      await client.close();
    };
  },
  'client-node': async () => {
    const { KubeConfig, Watch } = await import('@kubernetes/client-node');
    return async (kubeconfig, events) => {
      const config = new KubeConfig();
      config.loadFromFile(kubeconfig);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      let seen = 0;
      const abort = await new Watch(config).watch(
        '/api/v1/pods',
        { resourceVersion: '1' },
        (_phase: string, pod: { metadata: { name: string } }) => {
          if (pod.metadata.name !== '') seen++;
          if (seen === events) resolve();
        },
        (error: unknown) => reject(error),
      );
      await promise;
      abort.abort();
    };
  },
};

const [name = '', kubeconfig = '', events = '0'] = process.argv.slice(2);
const make = READERS[name];
if (make === undefined) throw new Error(`no reader ${name}`);
const read = await make();
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const before = process.cpuUsage();
await read(kubeconfig, Number(events));
const { user, system } = process.cpuUsage(before);
const cost: Cost = {
  cpuMs: (user + system) / 1000,
  peakMiB: process.resourceUsage().maxRSS / 1024,
  stallMs: delay.max / 1e6,
};
process.stdout.write(JSON.stringify(cost), () => process.exit());
