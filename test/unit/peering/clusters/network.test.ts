import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { type Tunnel, tunnels } from '../../../../src/api/tunnel.ts';
import type { Condition } from '../../../../src/api/wire.ts';
import { CALM_MS, networkOf } from '../../../../src/peering/clusters/network.ts';
import { byPerson, MILAN, NOW } from './support/objects.ts';
import { ClustersWorld } from './support/world.ts';

const timeOf = (ms: number): string => new Date(ms).toISOString();

function tunnel(ready: Partial<Condition> | undefined, spec: Partial<Tunnel['spec']> = {}): Tunnel {
  const peer = { publicKey: 'k', endpoints: ['a:1'], pods: ['10.0.0.0/16'], external: [] };
  const conditions = ready && [
    { type: 'Ready', status: 'True', reason: 'AsExpected', message: '', lastTransitionTime: '', ...ready },
  ];
  return {
    metadata: { name: MILAN, uid: 'u', resourceVersion: '1', creationTimestamp: timeOf(0) },
    spec: { clusterID: MILAN, peer, access: 'OffloadedPods', transit: 'None', ...spec },
    ...(conditions && { status: { conditions } }),
  };
}
const down = (sinceMs: number): Partial<Condition> => ({
  status: 'False',
  reason: 'NoHandshake',
  message: 'nothing comes from the peer any more',
  lastTransitionTime: timeOf(sinceMs),
});

describe('what is said of the network', () => {
  const said = (now: number, given: Tunnel | undefined, before?: string): string | undefined => {
    const conditions =
      before === undefined
        ? []
        : [{ type: 'NetworkReady', status: before, reason: 'Before', message: '', lastTransitionTime: '' }];
    const cluster = byPerson('milan', {}, { status: { conditions } });
    const found = networkOf({ cluster, tunnel: given, duplicateOf: undefined, now });
    return found && `${found.status} ${found.reason}`;
  };

  test.each<[string, string | undefined, Tunnel | undefined, string | undefined]>([
    ['no tunnel', 'True', undefined, undefined],
    ['it works', 'False', tunnel({}), 'True AsExpected'],
    ['it has just failed', 'True', tunnel(down(NOW - CALM_MS + 1)), 'True Before'],
    ['it has failed', 'True', tunnel(down(NOW - CALM_MS)), 'False NoHandshake'],
    ['it never worked, for a moment', undefined, tunnel(down(NOW)), 'Unknown Starting'],
    ['it failed in the future, says a wrong clock', 'True', tunnel(down(NOW + 60_000)), 'False NoHandshake'],
    ['nothing is reported', undefined, tunnel(undefined), 'Unknown Starting'],
    [
      'the peer has no network',
      undefined,
      tunnel(down(0), { peer: undefined as never }),
      'Unknown PeerHasNotTold',
    ],
    [
      'the peer announces the key of another',
      undefined,
      tunnel({ ...down(0), reason: 'KeyTaken' }, { peer: undefined as never, keyOf: 'o'.repeat(26) }),
      'False KeyTaken',
    ],
    [
      'the gateway is gone',
      'True',
      tunnel({ status: 'Unknown', reason: 'GatewayNotRunning', lastTransitionTime: timeOf(0) }),
      'Unknown GatewayNotRunning',
    ],
  ])('%s', (_what, before, given, expected) => {
    expect(said(NOW, given, before)).toBe(expected);
  });

  test('the message says what it means, why, and where to look', () => {
    const found = networkOf({
      cluster: byPerson('milan'),
      tunnel: tunnel(down(0)),
      duplicateOf: undefined,
      now: NOW,
    });
    expect(found?.message).toBe(
      `its pods run on, but cannot be reached from here, nor ours from there: nothing comes from the peer any more; see kubectl describe tunnel ${MILAN}`,
    );
  });
});

describe('on the ForeignCluster', () => {
  let world: ClustersWorld;
  beforeEach(async () => {
    world = await new ClustersWorld().up();
  });
  afterEach(async () => world.down());

  const network = (): Condition | undefined =>
    world.stored('milan')?.status?.conditions?.find(({ type }) => type === 'NetworkReady');
  const change = (ready: Partial<Condition>): void => {
    const stored = world.server.storage.get('tunnels.tributary.dev', MILAN);
    if (stored === undefined) throw new Error('no tunnel');
    world.server.storage.update('tunnels.tributary.dev', { ...stored, status: { ...tunnel(ready).status } });
  };

  test('a tunnel that fails is told after a moment, one that works at once; each is one write and one event', async () => {
    world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1' }));
    await world.until('milan', ({ status }) => status?.conditions !== undefined);
    expect(network()).toBeUndefined();
    world.seed(tunnels, tunnel({}));
    await world.wait('it works', () => network()?.status === 'True');
    const before = await world.quiet();
    for (let n = 0; n < 5; n++) {
      change(down(world.clock.now()));
      await world.clock.advance(1000);
      change({});
      await world.clock.advance(1000);
    }
    expect(await world.quiet()).toBe(before + 10); // the changes of the Tunnel itself
    change(down(world.clock.now()));
    await world.wait('it is down', () => network()?.status === 'False');
    expect(network()).toMatchObject({ reason: 'NoHandshake' });
    change({});
    await world.wait('it works again', () => network()?.status === 'True');
    expect(world.events.filter((event) => event.includes('Tunnel'))).toEqual([
      expect.stringMatching(/^milan Warning TunnelDown: NoHandshake: its pods run on/u),
      'milan Normal TunnelUp: packets go through the tunnel again',
    ]);
    world.server.storage.remove('tunnels.tributary.dev', MILAN);
    await world.wait('nothing is said', () => network() === undefined);
  });
});
