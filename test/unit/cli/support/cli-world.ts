import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { advertisements } from '../../../../src/api/advertisement.ts';
import { clusterModes } from '../../../../src/api/cluster-mode.ts';
import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { nodes, persistentVolumes, type ResourceType } from '../../../../src/api/resources.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import type { Command, CommandEnvironment } from '../../../../src/cli/command.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';

export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** Between two commands of a person. */
const PAUSE_MS = 1000;

/** A clock on which every wait takes one turn, and passes all of its time: commands that poll do so at once. */
function hasty(passedMs: number): Clock {
  return {
    now: () => systemClock.now() + passedMs,
    monotonic: () => systemClock.monotonic() + passedMs,
    after: (delayMs, callback) => systemClock.after(delayMs, callback),
    sleep: async (delayMs, signal) => {
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      passedMs += delayMs;
    },
  };
}

/** Commands on a fake API server, with somebody (or nobody) at the terminal. */
export class CliWorld {
  readonly api: FakeApi;
  /** What the person types to each question; undefined: there is no terminal. */
  answers: string[] | undefined;
  /** What a pipe brings. */
  piped = '';
  /** Of the terminal that is written to; undefined: it is none. */
  columns: number | undefined;
  hasColours = false;
  readonly asked: string[] = [];
  readonly abort: AbortController = new AbortController();
  #commands = 0;
  #steps: ((cluster: ForeignCluster) => ForeignCluster['status'] | undefined)[] = [];

  private constructor(api: FakeApi) {
    this.api = api;
  }

  static start(): CliWorld {
    const types = [
      foreignClusters,
      advertisements,
      peeringRequests,
      virtualNodes,
      persistentVolumes,
      clusterModes,
      namespaceOffloadings,
      tunnels,
      sharingPolicies,
      acceptancePolicies,
    ] as ResourceType<KubeObject>[];
    return new CliWorld(new FakeApi({ types }));
  }

  async run(command: Command, line: string | string[]): Promise<Outcome> {
    let out = '';
    let err = '';
    const io = {
      out: (text: string) => void (out += text),
      err: (text: string) => void (err += text),
      ...(this.columns !== undefined && { columns: this.columns }),
      hasColours: this.hasColours,
      input: {
        isTerminal: this.answers !== undefined,
        ask: async (question: string) => {
          this.asked.push(question);
          return Promise.resolve(this.answers?.shift() ?? '');
        },
        readAll: async () => Promise.resolve(this.piped),
      },
    };
    const open: CommandEnvironment['open'] = async (where) => {
      this.opened.push(where);
      const { context = '' } = where;
      return Promise.resolve((this.others.get(context) ?? this.api).client());
    };
    const args = typeof line === 'string' ? line.split(' ').filter((arg) => arg !== '') : line;
    const clock = hasty(PAUSE_MS * ++this.#commands);
    const code = await command.run(args, { io, signal: this.abort.signal, clock, open });
    return { code, out, err };
  }
  readonly opened: object[] = [];
  /** Further clusters, by the name of their context. */
  readonly others: Map<string, FakeApi> = new Map();

  /**
   * The part of the cluster role: whenever a ForeignCluster is written or read, `next` may say what its status is from
   * then on; undefined leaves it.
   */
  reconcile(next: (cluster: ForeignCluster) => ForeignCluster['status'] | undefined): void {
    this.#steps = [next];
    this.api.storage.subscribe(({ resource, current }) => {
      if (resource !== 'foreignclusters.tributary.dev' || current === undefined) return;
      const cluster = current as unknown as ForeignCluster;
      queueMicrotask(() => {
        for (const step of this.#steps) {
          const status = step(cluster);
          if (status === undefined) continue;
          const { generation = 1 } = cluster.metadata;
          this.setStatus(cluster.metadata.name, {
            ...cluster.status,
            ...status,
            observedGeneration: generation,
          });
        }
      });
    });
  }

  setStatus(name: string, status: ForeignCluster['status']): void {
    const found = this.api.storage.get('foreignclusters.tributary.dev', name);
    if (found === undefined) return;
    this.api.storage.update('foreignclusters.tributary.dev', {
      ...found,
      ...(status && { status: status as Record<string, unknown> }),
    });
    const clusterID = (found as unknown as ForeignCluster).spec?.clusterID ?? status?.clusterID;
    if (status?.outgoing?.phase === 'Established' && clusterID !== undefined) this.#startNode(clusterID);
  }

  /** Whether the agent of a virtual node comes up once a peering is established. */
  startsNodes = true;

  /** Of nodes that come up. */
  taints: object[] = [];

  #startNode(clusterID: string): void {
    if (this.api.storage.get('virtualnodes.tributary.dev', clusterID) !== undefined) return;
    const message = 'the agent has not reached it';
    const ready = { type: 'Ready', status: this.startsNodes ? 'True' : 'False', message };
    this.seed(virtualNodes, {
      metadata: { name: clusterID, labels: { [LABEL_PROVIDER]: clusterID } },
      status: { nodeName: `node-of-${clusterID}`, conditions: [ready] },
    });
    this.seed(nodes, { metadata: { name: `node-of-${clusterID}` }, spec: { taints: this.taints } });
  }

  seed(type: ResourceType<KubeObject>, object: object): AnyObject {
    return this.api.seed(type, object);
  }

  cluster(name: string): ForeignCluster | undefined {
    return this.api.storage.get('foreignclusters.tributary.dev', name);
  }

  secret(name: string): AnyObject | undefined {
    return this.api.storage.get('secrets', `tributary-system/${name}`);
  }

  /** As the cluster role writes it. */
  seedOwn(clusterID: string, type: ResourceType<KubeObject>): void {
    this.seed(type, {
      metadata: { namespace: 'tributary-system', name: 'tributary-announcement' },
      data: {
        clusterID,
        clusterName: 'Home',
        endpoints: 'home.example.org:7443',
        port: '7443',
        protocols: '1',
      },
    });
  }

  async stop(): Promise<void> {
    this.abort.abort(new Error('the test is over'));
    await this.api.stop();
  }
}
