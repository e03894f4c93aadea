import { expect, test } from '@jest/globals';

import { LABEL_APP_NAME } from '../../../src/api/manifest.ts';
import { pods } from '../../../src/api/resources.ts';
import type { Entry } from '../../../src/doctor/bundle/archive.ts';
import { collectBundle } from '../../../src/doctor/bundle/collect.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** One of ours, by its label; and by its port for metrics. */
const podAt = (namespace: string, name: string): object => ({
  metadata: { namespace, name, labels: { [LABEL_APP_NAME]: 'tributary' } },
  spec: {
    containers: [{ name: 'main', image: 'example/none:1', ports: [{ name: 'ops', containerPort: 8080 }] }],
  },
});

test('logs and metrics come from our namespaces, whatever label pods elsewhere bear', async () => {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  for (const namespace of ['tributary-system', 'tributary-agents', 'tributary-network'])
    api.seed(pods, podAt(namespace, 'ours'));
  api.seed(pods, podAt('shop', 'theirs'));
  api.fault({
    match: ({ path }) => /\/log$|\/proxy\/metrics$/u.test(path),
    times: Infinity,
    body: 'said',
  });
  const { signal } = new AbortController();
  const entries: Entry[] = [];
  const client = api.client();
  for await (const entry of collectBundle({ client, clock, signal, findings: [], title: 'x' }))
    entries.push(entry);
  expect(entries.filter(({ text }) => text === 'said').map(({ path }) => path)).toEqual(
    ['tributary-system', 'tributary-network', 'tributary-agents'].flatMap((namespace) => [
      `logs/${namespace}/ours/main.log`,
      `metrics/${namespace}/ours.txt`,
    ]),
  );
  expect(api.count(/shop|theirs/u)).toBe(0);
  expect(JSON.stringify(entries)).not.toContain('theirs');
});
