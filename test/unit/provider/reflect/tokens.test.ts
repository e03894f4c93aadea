import { describe, expect, test } from '@jest/globals';
import { LABEL_HOME_UID } from '../../../../src/api/names.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { HomeApiServerWay } from '../../../../src/provider/home-api-server.ts';
import { TokenReconciler, type TokenReconcilerOptions } from '../../../../src/provider/reflect/tokens.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const UID = '68b0b183-dcb1-4f80-b3c3-5c7960e42bcd';

/** The tokens of a pod that home does not know any more, made a moment ago. */
async function leftBehind({ isAsked = true, isRunning = false }): Promise<unknown> {
  const clock = new FakeClock();
  const deleted: string[] = [];
  const labels = { [LABEL_HOME_UID]: UID };
  const creationTimestamp = new Date(clock.now() - 1000).toISOString();
  const secret = {
    metadata: { name: `tributary-token-${UID}`, namespace: 'tenant', uid: 'u', labels, creationTimestamp },
  };
  const volumes = [{ projected: { sources: [{ secret: { name: secret.metadata.name } }] } }];
  const tenant = {
    synced: true,
    mapping: { homeNamespace: 'shop', tenantNamespace: 'tenant' },
    caches: { Secret: { remote: { get: () => secret } } },
    pods: { list: () => (isRunning ? [{ metadata: { labels }, spec: { volumes } }] : []) },
  };
  const keeper = new TokenReconciler({
    homePods: { synced: true, byIndex: () => [] },
    tenants: { of: () => tenant },
    foreign: {
      delete: async (_type: unknown, { name }: { name: string }) => Promise.resolve(deleted.push(name)),
    },
    homeApiServer: () => ({ kind: 'At', host: 'api.home', port: 6443 }),
    namespaces: { isAsked: () => isAsked },
    contact: () => true,
    clock,
  } as unknown as TokenReconcilerOptions);
  const { requeueAfterMs } = await keeper.reconcile(`shop/${UID}`, new AbortController().signal);
  return { isDeleted: deleted.length === 1, requeueAfterMs };
}

test.each([
  ['kept for a while', {}, { isDeleted: false, requeueAfterMs: 59_000 }],
  ['of a namespace that is taken out: gone at once', { isAsked: false }, { isDeleted: true }],
  ['not before their pod', { isAsked: false, isRunning: true }, { isDeleted: false, requeueAfterMs: 1000 }],
])('tokens of a pod that home has lost, %s', async (_what, given, wanted) => {
  expect(await leftBehind(given)).toEqual(wanted);
});

describe('a pod with the API access volume', () => {
  const sources = [{ serviceAccountToken: { path: 'token' } }];
  const home = (volume: string): Pod =>
    ({
      metadata: { name: 'web', namespace: 'shop', uid: UID },
      spec: { containers: [], volumes: [{ name: volume, projected: { sources } }] },
    }) as unknown as Pod;
  const stateOf = (volume: string, homeApiServer: HomeApiServerWay): unknown =>
    new TokenReconciler({
      tenants: { of: () => undefined },
      homeApiServer: () => homeApiServer,
    } as unknown as TokenReconcilerOptions).state(home(volume));
  const way = (kind: 'None' | 'Unknown'): HomeApiServerWay => ({
    kind,
    reason: 'NotAllowed',
    message: 'words',
  });

  test('waits until it is known whether there is a way home, and says so', () => {
    expect(stateOf('kube-api-access-x', way('Unknown'))).toEqual({
      reason: 'MissingReference',
      message: 'words',
    });
    expect(stateOf('kube-api-access-x', way('None'))).toBe('ready');
    expect(stateOf('kube-api-access-x', { kind: 'At', host: 'h', port: 1 })).toBe('pending');
  });

  test('a token for somebody else does not depend on it', () => {
    expect(stateOf('vault', way('Unknown'))).toBe('pending');
    expect(stateOf('vault', way('None'))).toBe('pending');
  });
});
