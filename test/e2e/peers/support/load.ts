/** Does everything that people and controllers do with remote pods, repeatedly, and records what fails. */
import type { Program } from '../../../../lab/demo/program.ts';
import { podPath } from '../../../support/e2e/api.ts';
import type { Peers } from '../../../support/e2e/peers.ts';
import { aPod, isReady } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';
import { ChannelSocket } from '../../../support/e2e/web-socket.ts';

export type Work = 'exec' | 'logs' | 'lists' | 'pods';

export interface LoadResult {
  /** How often each was done. */
  done: Record<Work, number>;
  failures: string[];
}

export interface LoadPlace {
  namespace: string;
  /** The tenant namespace in which its pods run. */
  tenant: string;
  /** It has a shell. */
  pod: string;
}

/** All works of a load. */
export const WORKS: readonly Work[] = ['exec', 'logs', 'lists', 'pods'];

export class BorrowLoad {
  readonly #peers: Peers;
  readonly #where: LoadPlace;
  readonly #result: LoadResult = { done: { exec: 0, logs: 0, lists: 0, pods: 0 }, failures: [] };
  #running: Promise<unknown> = Promise.resolve();
  #isOver = false;
  /** How often each ended, failures included. */
  readonly #ended: Record<Work, number> = { exec: 0, logs: 0, lists: 0, pods: 0 };
  /** Opened once; it must stay open during the whole load. */
  readonly #session: Program;
  readonly #follow: Program;

  private constructor(peers: Peers, where: LoadPlace) {
    this.#peers = peers;
    this.#where = where;
    const { namespace, pod } = where;
    const forever = { timeoutMs: 300_000, keepStdin: true };
    this.#session = peers.start(`kubectl -n ${namespace} exec -i ${pod} -- cat`, forever);
    this.#follow = peers.start(`kubectl -n ${namespace} logs -f ${pod}`, forever);
  }

  static async start(peers: Peers, where: LoadPlace): Promise<BorrowLoad> {
    const load = new BorrowLoad(peers, where);
    load.#session.write('first\n');
    await load.#session.waitFor(/first/);
    load.#running = Promise.all([
      load.#repeat('exec', async (count) => load.#exec(count)),
      load.#repeat('logs', async () => load.#logs()),
      load.#repeat('lists', async () => load.#list()),
      load.#repeat('pods', async (count) => load.#pod(count)),
    ]);
    return load;
  }

  /** Waits until each of these works has begun anew since this call, and ended: failed or not. */
  async untilRepeated(works: readonly Work[]): Promise<void> {
    const before = { ...this.#ended };
    // What runs at this moment began earlier: the end of the next one counts.
    const isRepeated = (work: Work): boolean => this.#ended[work] >= before[work] + 2;
    await until('the load is repeated', async () => works.every(isRepeated), {
      seconds: 120,
      seen: async () => ({ before, now: this.#ended, ...this.#result }),
    });
  }

  async end(): Promise<LoadResult> {
    this.#isOver = true;
    await this.#running;
    const { namespace, pod } = this.#where;
    await this.#attempt('the long session', async () => {
      this.#session.write('last\n');
      await this.#session.waitFor(/last/);
      this.#session.closeInput();
      const { code } = await this.#session.ended;
      if (code !== 0) throw new Error(`exit code ${code}`);
    });
    await this.#attempt('the logs that were followed', async () => {
      await this.#peers.ask(`kubectl -n ${namespace} exec ${pod} -- sh -c 'echo followed > /proc/1/fd/1'`);
      await this.#follow.waitFor(/followed/);
    });
    await this.#follow.stop();
    return this.#result;
  }

  async #repeat(work: Work, action: (count: number) => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await this.#attempt(work, async () => {
        await action(this.#result.done[work]);
        this.#result.done[work]++;
      });
      this.#ended[work]++;
    }
  }

  async #attempt(what: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#result.failures.push(`${what}: ${Error.isError(error) ? error.message : String(error)}`);
    }
  }

  async #exec(count: number): Promise<void> {
    const { namespace, pod } = this.#where;
    const query = ['echo', `said ${count}`].map((word) => `command=${encodeURIComponent(word)}`).join('&');
    const path = `${podPath(namespace, pod)}/exec?${query}&stdout=true&stderr=true`;
    const socket = await ChannelSocket.open(this.#peers.rome.cluster, path, 'v5.channel.k8s.io');
    try {
      await socket.untilText(1, `said ${count}\n`);
      await socket.untilText(3, '"Success"');
    } finally {
      socket.close();
    }
  }

  async #logs(): Promise<void> {
    const { namespace, pod } = this.#where;
    const { status, body } = await this.#peers.rome.cluster.api.call(
      'GET',
      `${podPath(namespace, pod)}/log?tailLines=5`,
    );
    if (status !== 200) throw new Error(`${status} ${body}`);
  }

  /** Reads the foreign cluster with the current credential, and what the virtual node reports about its pods. */
  async #list(): Promise<void> {
    const { rome } = this.#peers;
    const file = await this.#peers.kubeconfig('load.kubeconfig');
    const listed = await this.#peers.asAgent(file, 'get', 'pods', '-n', this.#where.tenant, '-o', 'name');
    if (!listed.includes(`pod/${this.#where.pod}\n`)) throw new Error(`listed ${listed}`);
    const { status, body } = await rome.cluster.api.call('GET', '/api/v1/nodes/milan/proxy/pods');
    if (status !== 200) throw new Error(`${status} ${body}`);
  }

  async #pod(count: number): Promise<void> {
    const { rome } = this.#peers;
    const { namespace } = this.#where;
    const name = `passing-${count}`;
    const nodeSelector = { 'tributary.dev/virtual-node': 'milan' };
    await this.#peers.runPod(namespace, aPod(name, undefined, { spec: { nodeSelector } }), isReady);
    await rome.remove(podPath(namespace, name));
    await until(`${name} is gone`, async () => (await rome.pod(namespace, name)) === undefined, {
      seconds: 60,
    });
  }
}
