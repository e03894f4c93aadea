import { expect, test } from '@jest/globals';
import type { NamespaceMapping } from '../../../../src/api/virtual-node.ts';
import { Readiness } from '../../../../src/provider/node/readiness.ts';
import type { Tenants } from '../../../../src/provider/tenants.ts';

const mapping = (homeNamespace: string): NamespaceMapping => ({
  homeNamespace,
  tenantNamespace: `${homeNamespace}-t`,
});

function setUp(): { readiness: Readiness; states: Record<string, { synced: boolean; problem?: string }> } {
  const states: Record<string, { synced: boolean; problem?: string }> = {};
  const tenants = {
    of: (name: string) => states[name],
    get missing() {
      return Object.keys(states).find((name) => states[name]?.synced === false);
    },
  };
  return { readiness: new Readiness(tenants as unknown as Tenants), states };
}

test('namespaces of the start are waited for, later ones are not', () => {
  const { readiness, states } = setUp();
  const [shop, web] = [mapping('shop'), mapping('web')];
  expect(readiness.obstacle([shop], [shop])?.reason).toBe('AgentNotRunning');
  readiness.listening = true;
  states['shop'] = { synced: false };
  expect(readiness.obstacle([shop], [shop])).toEqual({ reason: 'CachesNotSynced', message: 'shop' });
  states['shop'] = { synced: true };
  expect(readiness.obstacle([shop], [shop])).toBeUndefined();
  states['web'] = { synced: false };
  expect(readiness.obstacle([shop, web], [shop, web])).toBeUndefined();
  readiness.listening = false;
  expect(readiness.obstacle([shop, web], [shop, web])?.reason).toBe('AgentNotRunning');
});

test('one that is on its way out is not waited for, as it may never be read again', () => {
  const { readiness, states } = setUp();
  const [shop, gone] = [mapping('shop'), mapping('gone')];
  readiness.listening = true;
  states['gone'] = { synced: false, problem: 'Forbidden' };
  states['shop'] = { synced: false };
  expect(readiness.obstacle([shop, gone], [shop])?.reason).toBe('CachesNotSynced');
  states['shop'] = { synced: true };
  expect(readiness.obstacle([shop, gone], [shop])).toBeUndefined();
});

test('a namespace that is not opened yet has not been read', () => {
  const { readiness, states } = setUp();
  readiness.listening = true;
  expect(readiness.obstacle([mapping('shop')], [mapping('shop')])).toBeUndefined();
  states['shop'] = { synced: false };
  expect(readiness.obstacle([mapping('shop')], [mapping('shop')])?.reason).toBe('CachesNotSynced');
});

test('the credential is tried where nothing is in the way, or in the first, or nowhere', () => {
  const { readiness, states } = setUp();
  expect(readiness.probed()).toBeUndefined();
  expect(readiness.probed([mapping('shop'), mapping('web')])).toBe('shop-t');
  states['shop'] = { synced: false, problem: 'Forbidden' };
  expect(readiness.probed([mapping('shop'), mapping('web')])).toBe('web-t');
  states['web'] = { synced: false, problem: 'Forbidden' };
  expect(readiness.probed([mapping('shop'), mapping('web')])).toBe('shop-t');
  states['web'] = { synced: false };
  expect(readiness.probed([mapping('shop'), mapping('web')])).toBe('shop-t');
  // A new namespace whose rights are still on their way says nothing about the credential.
  expect(readiness.probed([mapping('web')])).toBeUndefined();
  states['web'] = { synced: true };
  expect(readiness.probed([mapping('shop'), mapping('web')])).toBe('web-t');
});
