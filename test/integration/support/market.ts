/** Several providers on one control plane, as peering and their agents would show them; kwok plays their nodes, and their pods. */
import type { KubeApi } from '../../../lab/kube-api.ts';
import { kwokNodeAnnotation } from '../../../lab/kwok.ts';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { namespaces, nodes, pods } from '../../../src/api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Draft, Pod, ResourceList } from '../../../src/api/wire.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { forgeNode } from '../../../src/provider/node/forge.ts';
import { awaited, eventually } from '../../support/eventually.ts';

const NAMESPACE = 'market';
const LABELS = { market: 'yes' };
const IN_ALL: ResourceList = { cpu: '4', memory: '16Gi', pods: '50' };
const READY = {
  type: 'Ready',
  status: 'True',
  reason: 'AsExpected',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

export class Market {
  readonly #admin: KubeClient;
  readonly #api: Pick<KubeApi, 'call'>;

  constructor(admin: KubeClient, api: Pick<KubeApi, 'call'>) {
    this.#admin = admin;
    this.#api = api;
  }

  /** A namespace that goes to these providers only; in euros for each core. */
  async open(prices: Readonly<Record<string, string>>, nodeSize: ResourceList): Promise<void> {
    await this.#admin.create(namespaces, { metadata: { name: NAMESPACE } });
    for (const [name, price] of Object.entries(prices)) await this.#provider(name, price, nodeSize);
    await this.#admin.create(namespaceOffloadings, {
      metadata: { namespace: NAMESPACE, name: 'offloading' },
      spec: { podStrategy: 'Remote', clusterSelector: { matchLabels: LABELS } },
    });
    const names = Object.keys(prices).toSorted();
    await eventually('all providers have the namespace', async () => {
      const ref = { namespace: NAMESPACE, name: 'offloading' };
      const { clusters = [] } = (await this.#admin.get(namespaceOffloadings, ref)).status ?? {};
      return clusters.filter(({ phase }) => phase === 'Ready').length === names.length;
    });
    await eventually('pods are asked about', async () => {
      const asked = await this.asked({ cpu: '100m' }).catch(() => undefined);
      return asked?.metadata.annotations?.['tributary.dev/preferred'] !== undefined;
    });
  }

  async #provider(name: string, price: string, nodeSize: ResourceList): Promise<void> {
    const made: VirtualNode = await this.#admin.create(virtualNodes, {
      metadata: { name },
      spec: {
        kubeconfigSecretRef: { namespace: 'tributary-system', name },
        resources: IN_ALL,
        nodeSizes: [nodeSize],
        prices: { cpu: { amount: price, currency: 'EUR' } },
        labels: LABELS,
        namespaces: [{ homeNamespace: NAMESPACE, tenantNamespace: `${name}-market` }],
      },
    });
    const body = { status: { conditions: [READY] } };
    await this.#admin.patch(virtualNodes, { name }, { type: 'merge', body }, { subresource: 'status' });
    const node = forgeNode(undefined, made);
    const annotations = { ...node.metadata.annotations, ...kwokNodeAnnotation };
    await this.#admin.create(nodes, {
      ...node,
      metadata: { ...node.metadata, annotations },
      status: { capacity: IN_ALL, allocatable: IN_ALL },
    });
    await eventually(`${name} takes pods`, async () => {
      const { spec } = await this.#admin.get(nodes, { name });
      return spec?.taints?.length === 1;
    });
  }

  /** What peering writes when another contract is in force. */
  async change(name: string, spec: Pick<VirtualNode['spec'], 'prices' | 'nodeSizes'>): Promise<void> {
    await this.#admin.patch(virtualNodes, { name }, { type: 'merge', body: { spec } });
  }

  /** As it would be let in now. */
  async asked(requests: ResourceList): Promise<Pod> {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    const { status, body } = await this.#api.call('POST', path, draft('asked', requests));
    if (status !== 201) throw new Error(`${status} ${body}`);
    return JSON.parse(body) as Pod;
  }

  async make(name: string, requests: ResourceList): Promise<void> {
    await this.#admin.create(pods, draft(name, requests));
  }

  async pod(name: string): Promise<Pod | undefined> {
    return this.#admin.get(pods, { namespace: NAMESPACE, name }).catch(ignoring('NotFound'));
  }

  /** Where the scheduler has put it, once it runs there. */
  async placeOf(name: string): Promise<string> {
    return awaited(`${name} runs`, async () => {
      const { spec, status } = (await this.pod(name)) ?? {};
      return status?.phase === 'Running' ? spec?.nodeName : undefined;
    });
  }
}

const draft = (
  name: string,
  requests: ResourceList,
): Draft<Pod> & { metadata: { namespace: string; name: string } } => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: NAMESPACE, name },
  spec: { containers: [{ name: 'app', image: 'app:1', resources: { requests } }] },
});
