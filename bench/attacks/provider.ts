import { readFileSync } from 'node:fs';

import { namespaces, pods, secrets } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import type { Attack, Counts } from './attack.ts';
import { type AttackBed, SYSTEM } from './bed.ts';

const PODS = 40;
const WORKERS = 8;
const CONDITIONS = 30;
const FILLING = 'x'.repeat(32_000);
const NODE = 'milan';

/** A provider that runs pods of this cluster, and reports a megabyte of status of each, another one each time. */
export class ProviderAttack implements Attack {
  readonly name = 'provider';
  readonly what: string = `a provider reports a megabyte of status of ${PODS} pods by turns, another one each time`;
  readonly needsProvider = true;
  readonly #counts = { statuses: 0, 'reported MiB': 0, refused: 0 };
  #provider: HttpClient | undefined;

  async prepare(bed: AttackBed): Promise<void> {
    const cluster = bed.lab.cluster('provider');
    const kubeconfig = readFileSync(cluster.kubeconfig);
    const client = createClient(await parseKubeconfig(kubeconfig.toString()));
    this.#provider = client;
    await client.create(namespaces, { metadata: { name: 'tenant' } });
    await bed.admin.create(namespaces, { metadata: { name: 'shop' } });
    await bed.admin.create(secrets, {
      metadata: { namespace: SYSTEM, name: 'milan-kubeconfig' },
      data: { kubeconfig: kubeconfig.toString('base64') },
    });
    await bed.admin.create(virtualNodes, {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'VirtualNode',
      metadata: { name: NODE },
      spec: {
        kubeconfigSecretRef: { namespace: SYSTEM, name: 'milan-kubeconfig' },
        resources: { cpu: '100', memory: '100Gi', pods: '110' },
        namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }],
      },
    });
    await bed.startPeer(NODE);
    const containers = [{ name: 'main', image: 'web:1' }];
    for (let pod = 0; pod < PODS; pod++) {
      await bed.admin.create(pods, {
        metadata: { namespace: 'shop', name: nameOf(pod) },
        spec: { nodeName: NODE, containers },
      });
    }
    await bed.until('all pods run, as home sees it', async () => {
      const { items } = await bed.admin.list(pods, { namespace: 'shop' });
      return items.filter(({ status }) => status?.phase === 'Running').length === PODS;
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => this.#work(worker, signal)));
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  async stop(): Promise<void> {
    await this.#provider?.close();
  }

  async #work(worker: number, signal: AbortSignal): Promise<void> {
    for (let pod = worker; !signal.aborted; pod = (pod + WORKERS) % PODS) {
      const conditions = Array.from({ length: CONDITIONS }, (_, at) => ({
        type: `Claim${at}`,
        status: 'True',
        message: `${this.#counts.statuses} ${FILLING}`,
      }));
      const ref = { namespace: 'tenant', name: nameOf(pod) };
      const body = { status: { conditions } };
      this.#counts.statuses += 1;
      this.#counts['reported MiB'] += (CONDITIONS * FILLING.length) / 1024 / 1024;
      await this.#provider
        ?.patch(pods, ref, { type: 'merge', body }, { subresource: 'status' })
        .catch(() => (this.#counts.refused += 1));
    }
  }
}

const nameOf = (pod: number): string => `web-${pod}`;
