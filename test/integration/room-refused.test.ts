import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LABEL_VIRTUAL_NODE } from '../../src/api/names.ts';
import { deployments, nodes, pods, resourceQuotas } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { parseMilli } from '../../src/lib/quantity.ts';
import { eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';

/** The virtual node shows more than the provider admits: real schedulers, controllers and quotas find their way. */

const TIMEOUT_MS = 240_000;
/** For several steps in which room comes back to the Node. */
const PATIENCE_MS = 150_000;
const SHOP = { namespace: 'shop' };

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await lab.start();
  await lab.ready();
}, TIMEOUT_MS);
afterAll(async () => lab?.down(), TIMEOUT_MS);

const labels = { app: 'wide' };

/** Five of them fit on the one node over there. */
const wide = (replicas: number): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'wide', ...SHOP },
  spec: {
    replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
        tolerations: [{ operator: 'Exists' }],
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '6' } } }],
      },
    },
  },
});

const list = async (): Promise<Pod[]> =>
  (await lab.home.list(pods, { ...SHOP, labelSelector: 'app=wide' })).items;
const inPhase = async (phase: string): Promise<Pod[]> =>
  (await list()).filter(({ status }) => status?.phase === phase);
const shownMilli = async (): Promise<bigint> =>
  parseMilli((await lab.home.get(nodes, { name: NODE })).status?.allocatable?.['cpu'] ?? '0');

/** What the provider admits from now on. */
async function admit(cpu: string): Promise<void> {
  const quota = { namespace: 'tenant', name: 'tributary' };
  const hard = { 'requests.cpu': cpu };
  await lab.foreign.patch(resourceQuotas, quota, { type: 'merge', body: { spec: { hard } } });
  await eventually(`${cpu} CPUs are admitted`, async () => {
    const { status } = await lab.foreign.get(resourceQuotas, quota);
    return status?.hard?.['requests.cpu'] === cpu;
  });
}

test(
  'refused pods of a Deployment end as on a full node, others wait for the scheduler, and all run when there is room',
  async () => {
    await admit('20');
    await lab.homeCluster.api.call('POST', '/apis/apps/v1/namespaces/shop/deployments', wide(5));
    await eventually('two have ended', async () => (await inPhase('Failed')).length >= 2, PATIENCE_MS);
    for (const { status } of await inPhase('Failed')) {
      expect(status).toMatchObject({
        reason: 'OutOfcpu',
        message: expect.stringMatching(/has no room for the pod: .*exceeded quota: tributary/u),
      });
    }
    expect(await shownMilli()).toBeLessThan(1_000_000n);
    await eventually('three run', async () => (await inPhase('Running')).length === 3);
    await eventually('two others wait, and no node has them', async () => {
      const waiting = await inPhase('Pending');
      return waiting.length === 2 && waiting.every(({ spec }) => spec?.nodeName === undefined);
    });
    // The provider admits more.
    await admit('500');
    await eventually('all run', async () => (await inPhase('Running')).length === 5, PATIENCE_MS);
    await eventually('all is shown again', async () => (await shownMilli()) === 1_000_000n, PATIENCE_MS);
    await lab.home.delete(deployments, { ...SHOP, name: 'wide' });
  },
  2 * TIMEOUT_MS,
);
