import { expect, test } from '@jest/globals';

import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { endPeerings } from '../../../../src/cli/install/uninstall-peerings.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

test('what stays at other clusters is told, with the command that removes it', async () => {
  const api = new FakeApi({ types: [foreignClusters] });
  const link = { connected: true };
  const ended = { outgoing: { phase: 'None' }, incoming: { phase: 'None' }, observedGeneration: 9 };
  api.seed(foreignClusters, {
    metadata: { name: 'm', annotations: { 'tributary.dev/policy-over-there': 'rome' } },
    status: { ...ended, link, clusterName: 'milan' },
  });
  api.seed(foreignClusters, {
    metadata: { name: 'o', annotations: { 'tributary.dev/policy-over-there': 'rome' } },
    status: { ...ended, clusterName: 'oslo' },
  });
  api.seed(foreignClusters, { metadata: { name: 'turin' }, status: ended });
  let out = '';
  await endPeerings(
    {
      client: api.client(),
      clock: new FakeClock(),
      io: { out: (text) => void (out += text), err: () => {} },
      signal: new AbortController().signal,
    },
    { drainMs: 0, peerMs: 0 },
  );
  expect(out).toBe(
    '  SharingPolicy rome, which tributary peer made in milan, stays there. To remove it: tributary unpeer CLUSTER_ID --context CONTEXT, with the context of milan\n' +
      '  SharingPolicy rome, which tributary peer made in oslo, stays there, unless Tributary was taken out of that cluster. To remove it: tributary unpeer CLUSTER_ID --context CONTEXT, with the context of oslo\n',
  );
  await api.stop();
});
