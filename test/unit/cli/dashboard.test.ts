import { expect, test } from '@jest/globals';

import { deployments } from '../../../src/api/resources.ts';
import type { Deployment } from '../../../src/deploy/program.ts';
import { dashboardCommand, whyEnded } from '../../../src/cli/dashboard.ts';
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
    'with Helm 3.14 or newer, helm upgrade ours CHART --namespace kube-system --reset-then-reuse-values --set dashboard=true',
  ],
])(
  'where it is off and the roles were installed %s, it says how to switch it on',
  async (_how, metadata, command) => {
    expect(await saidWith(metadata)).toBe(
      `the dashboard is switched off in this cluster; to switch it on: ${command}\n`,
    );
  },
);

test('a port that is in use is told as such; else kubectl has the word', () => {
  const inUse =
    'Unable to listen on port 8090: Listeners failed to create with the following errors: [unable to create listener: Error ' +
    'listen tcp4 127.0.0.1:8090: bind: address already in use]\nerror: unable to listen on any of the requested ports: [{8090 8090}]';
  expect(whyEnded(inUse, '8090')).toBe(
    'port 8090 of this machine is in use by another program: name another one with --port, or none',
  );
  expect(whyEnded('error: forbidden', '0')).toBe('kubectl port-forward ended: error: forbidden');
  expect(whyEnded('', '0')).toBe('kubectl port-forward ended: it said nothing');
});
