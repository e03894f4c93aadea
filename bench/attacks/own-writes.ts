import { setTimeout as sleep } from 'node:timers/promises';

import { configMaps, namespaces } from '../../src/api/resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';

/** Whether somebody attacks. */
export type Phase = 'calm' | 'attack';

const NAMESPACE = 'own-work';
const PAUSE_MS = 50;

/** The cluster's own work: one small ConfigMap, rewritten again and again, one write after another. */
export class OwnWrites {
  phase: Phase = 'calm';
  readonly #client: KubeClient;
  readonly #tookMs: Readonly<Record<Phase, number[]>> = { calm: [], attack: [] };
  failed = 0;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#client.create(namespaces, { metadata: { name: NAMESPACE } });
    await this.#client.create(configMaps, { metadata: { namespace: NAMESPACE, name: 'beat' } });
    for (let beat = 0; !signal.aborted; beat++) {
      const [began, { phase }] = [performance.now(), this];
      const body = { data: { beat: String(beat) } };
      const ref = { namespace: NAMESPACE, name: 'beat' };
      const isDone = await this.#client
        .patch(configMaps, ref, { type: 'merge', body }, { signal })
        .then(() => true)
        .catch(() => false);
      // One that spans both phases belongs to neither.
      if (!signal.aborted && !isDone) this.failed += 1;
      else if (phase === this.phase && isDone) this.#tookMs[phase].push(performance.now() - began);
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** How many, and the time below which that part of them stayed. */
  quantile(phase: Phase, part: number): number {
    const sorted = this.#tookMs[phase].toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
  }

  count(phase: Phase): number {
    return this.#tookMs[phase].length;
  }
}
