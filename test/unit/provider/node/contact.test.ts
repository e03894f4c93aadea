import { expect, test } from '@jest/globals';

import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { ForeignContact } from '../../../../src/provider/node/contact.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

interface Parts {
  clock: FakeClock;
  api: FakeApi;
  foreign: HttpClient;
  contact: ForeignContact;
}

function setUp(tenantNamespace?: string): Parts {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const api = new FakeApi({ clock });
  const foreign = api.client();
  const contact = new ForeignContact({
    foreign,
    problem: () => undefined,
    credentialEnds: async () => Promise.resolve(Date.UTC(2026, 0, 1, 1)),
    tenantNamespace: () => tenantNamespace,
    clock,
    log: silentLogger,
  });
  return { clock, api, foreign, contact };
}

test('a foreign API server that does not answer: what that means, until when, and the cause at the end', async () => {
  const { clock, api, foreign, contact } = setUp();
  await api.stop();
  await contact.start();
  await clock.until('it is said', () => contact.state.reason === 'ForeignClusterUnreachable');
  expect(contact.state.message).toMatch(
    /^nothing answers on the way to the foreign API server: .* Pods over there run on, and the credential holds until 2026-01-01T01:00:00Z\. Cause: ./u,
  );
  await contact.stop();
  await foreign.close();
});

test.each([
  ['rights that are on their way are forgiven, and then told', 403, 'NotAuthorized', 3],
  ['a credential that is refused is told at once', 401, 'CredentialsRejected', 1],
] as const)('%s', async (_what, status, reason, probes) => {
  const { clock, api, foreign, contact } = setUp('shop-t');
  api.fault({ match: ({ path }) => path === '/version', times: 9, body: '{"gitVersion": "v1.36.0"}' });
  await contact.start();
  await clock.until('it answers', () => contact.state.ok);
  let refused = 0;
  api.fault({
    match: ({ path }) => path.endsWith('/pods') && ++refused > 0,
    times: 9,
    status,
  });
  contact.probe();
  await clock.until('it is told', () => contact.state.reason === reason);
  expect(refused).toBe(probes);
  await contact.stop();
  await foreign.close();
  await api.stop();
});
