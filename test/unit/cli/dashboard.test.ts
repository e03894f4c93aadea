import { expect, test } from '@jest/globals';

import { deployments } from '../../../src/api/resources.ts';
import type { Deployment } from '../../../src/deploy/program.ts';
import { dashboardCommand } from '../../../src/cli/dashboard.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';

/** What is said in a cluster whose role `cluster` serves no page, and bears these marks of its installation. */
async function saidWith(metadata: object): Promise<string> {
  const api = new FakeApi({ types: [deployments] });
  const spec = { template: { spec: { containers: [{ name: 'tributary', args: ['run', 'cluster'] }] } } };
  await api.client().create(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: 'tributary-system', name: 'tributary-cluster', ...metadata },
    spec: spec as NonNullable<Deployment['spec']>,
  });
  let said = '';
  const code = await dashboardCommand.run([], {
    io: { out: (text) => void (said += text), err: (text) => void (said += text) },
    signal: new AbortController().signal,
    clock: systemClock,
    open: async () => Promise.resolve(api.client()),
  });
  expect(code).toBe(1);
  return said;
}

const labels = { 'tributary.dev/installation': 'tributary' };

test.each([
  ['by hand', {}, 'apply the manifests of the role cluster again, with --dashboard on'],
  ['by tributary install', { labels }, 'tributary upgrade --dashboard true'],
  [
    'by Helm',
    {
      labels,
      annotations: {
        'meta.helm.sh/release-name': 'ours',
        'meta.helm.sh/release-namespace': 'kube-system',
      },
    },
    'helm upgrade ours CHART --namespace kube-system --reuse-values --set dashboard=true',
  ],
])(
  'where it is off and the roles were installed %s, it says how to switch it on',
  async (_how, metadata, command) => {
    expect(await saidWith(metadata)).toBe(
      `the dashboard is switched off in this cluster; to switch it on: ${command}\n`,
    );
  },
);
