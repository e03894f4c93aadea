import { expect, test } from '@jest/globals';

import { silentLogger } from '../../../../src/lib/log.ts';
import { ForeignContact } from '../../../../src/provider/node/contact.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

test('a foreign API server that does not answer: what that means, until when, and the cause at the end', async () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const api = new FakeApi({ clock });
  const foreign = api.client();
  const contact = new ForeignContact({
    foreign,
    problem: () => undefined,
    credentialEnds: async () => Promise.resolve(Date.UTC(2026, 0, 1, 1)),
    tenantNamespace: () => undefined,
    clock,
    log: silentLogger,
  });
  await api.stop();
  await contact.start();
  await clock.until('it is said', () => contact.state.reason === 'ForeignClusterUnreachable');
  expect(contact.state.message).toMatch(
    /^nothing answers on the way to the foreign API server: .* Pods over there run on, and the credential holds until 2026-01-01T01:00:00Z\. Cause: ./u,
  );
  await contact.stop();
  await foreign.close();
});
