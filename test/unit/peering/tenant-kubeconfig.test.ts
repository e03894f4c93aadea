import { expect, test } from '@jest/globals';
import { forgeKubeconfig } from '../../../src/peering/tenant-kubeconfig.ts';

const access = { peer: 'rome', server: 'https://milan.example:6443', token: 'secret' };

test('everything is inside, so that the file works anywhere', () => {
  expect(
    forgeKubeconfig({
      ...access,
      certificateAuthorityData: 'Q0E=',
      tlsServerName: 'api',
      namespace: 'rome-shop',
    }),
  ).toEqual({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'foreign',
    clusters: [
      {
        name: 'foreign',
        cluster: { server: access.server, 'certificate-authority-data': 'Q0E=', 'tls-server-name': 'api' },
      },
    ],
    users: [{ name: 'rome', user: { token: 'secret' } }],
    contexts: [{ name: 'foreign', context: { cluster: 'foreign', user: 'rome', namespace: 'rome-shop' } }],
  });
});

test.each(['http://milan.example', 'milan.example:6443', ''])('refuses the server %j', (server) => {
  expect(() => forgeKubeconfig({ ...access, server })).toThrow('is not an https URL');
});
