/** A way of its own to home for each of several processes: it notes what that one has written there, and can be broken in part. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { adminToken, kubeconfigWith } from '../../../faults/access.ts';
import type { Asked } from '../../../faults/proxy/fault.ts';
import { type FaultProxy, proxyOf } from '../../../faults/proxy/proxy.ts';
import type { Cluster } from '../../../lab/cluster.ts';

export interface NotedWay {
  /** Kubeconfig of an administrator. */
  readonly file: string;
  /** `PUT /api/...`, in their order. */
  readonly writes: string[];
  /** Writes to what has this in its path fail. */
  broken?: string;
}

export class NotedWays {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tributary-ways-'));
  readonly #ways = new Map<string, NotedWay>();
  readonly #proxies: FaultProxy[] = [];

  static async to(home: Cluster, names: readonly string[]): Promise<NotedWays> {
    const all = new NotedWays();
    for (const name of names) await all.#open(home, name);
    return all;
  }

  async #open(home: Cluster, name: string): Promise<void> {
    const proxy = await proxyOf(home);
    this.#proxies.push(proxy);
    const token = await adminToken(home, { namespace: 'shop', name: 'default' });
    const file = join(this.#folder, name);
    writeFileSync(file, JSON.stringify(kubeconfigWith(home, proxy.url, token)));
    const way: NotedWay = { file, writes: [] };
    proxy.judge((asked) => {
      const { broken } = way;
      const isBroken = broken !== undefined && asked.isWrite && asked.path.includes(broken);
      return isBroken ? { kind: 'status', code: 503 } : noted(way.writes, asked);
    });
    this.#ways.set(name, way);
  }

  of(name: string): NotedWay {
    const way = this.#ways.get(name);
    if (way === undefined)
      throw new Error(`there is no way of ${name}: ${[...this.#ways.keys()].join(', ')}`);
    return way;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map(async (proxy) => proxy.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Lets all pass, and notes writes, without what a process that only stands by says of itself. */
export function noted(writes: string[], { method, path, resource, isWrite }: Asked): undefined {
  if (isWrite && resource !== 'events') writes.push(`${method} ${path}`);
}
