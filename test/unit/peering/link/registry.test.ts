import { afterEach, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';

import type { Offer } from '../../../../src/api/offer.ts';
import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { issueLeaf } from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { eventually } from '../../../support/eventually.ts';
import { linked, PeeringNode, type PeeringNodeOptions } from '../../../support/peering/peering-node.ts';

let nodes: PeeringNode[] = [];
async function start(options: PeeringNodeOptions = {}): Promise<PeeringNode> {
  const node = await new PeeringNode(options).start();
  nodes.push(node);
  return node;
}
afterEach(async () => {
  await Promise.all(nodes.map(async (node) => node.stop()));
  nodes = [];
});

const request = { clusterName: 'one', namespaces: ['shop'] };
const contract = { text: '{"a":1}', signature: 'c2lnbmF0dXJl' };

describe('one link', () => {
  test('is made by either side and seen by both', async () => {
    const [one, two] = [await start(), await start()];
    one.dial(two);
    await linked(one, two);
    const [ours, theirs] = [one.registry.view(two.id), two.registry.view(one.id)];
    expect(ours).toMatchObject({
      connected: true,
      dialledBy: 'Us',
      endpoint: two.address,
      protocol: 1,
      clusterName: 'test',
      software: '0.0.0',
      peerEndpoints: [two.address],
    });
    expect(theirs).toMatchObject({ connected: true, dialledBy: 'Them', clusterID: one.id });
    expect(Buffer.from(theirs?.publicKey ?? [])).toEqual(Buffer.from(one.identity.publicKey));
    // Not even for a moment was there something wrong.
    expect(one.registry.problem(two.id)).toBeUndefined();
    await eventually('a round trip was measured', () => one.registry.view(two.id)?.rttMs !== undefined);
  });

  test('carries whole states: all at first, then what differs, and what was taken back', async () => {
    const [one, two] = [await start(), await start()];
    one.say(two, { request });
    one.dial(two);
    await eventually('the request arrived', () => two.lastHeard(one).request != null);
    expect(two.lastHeard(one)).toEqual({ request, acceptance: null, offer: null, grant: null });
    two.heard.length = 0;
    one.say(two, { request, acceptance: contract });
    await eventually('the acceptance arrived', () => two.heard.length > 0);
    expect(two.heard).toEqual([{ from: one.id, changes: { acceptance: contract } }]);
    one.say(two, {});
    await eventually('it was taken back', () => two.lastHeard(one).acceptance === null);
    expect(two.lastHeard(one)).toEqual({ request: null, acceptance: null });
  });

  test('gives one batch at a time, and of what comes meanwhile the last word', async () => {
    const [one, two] = [await start(), await start()];
    let [working, most] = [0, 0];
    two.refuse = async () => {
      most = Math.max(most, ++working);
      await new Promise((resolve) => setImmediate(resolve));
      working--;
    };
    one.dial(two);
    await linked(one, two);
    for (let round = 0; round < 500; round++) {
      one.say(two, { request: { ...request, clusterName: `n${round}` } });
      if (round % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually('the last word arrived', () => two.lastHeard(one).request?.clusterName === 'n499');
    expect(most).toBe(1);
    expect(two.heard.length).toBeLessThan(100);
  });

  test('tells the sender once what is wrong, and hands it over again where the trouble was ours', async () => {
    const [one, two] = [await start(), await start()];
    let away = true;
    two.refuse = () => {
      if (away) throw new TributaryError('Unavailable', 'the API server is away');
    };
    one.say(two, { request });
    one.dial(two);
    await eventually('one was told', () =>
      one.warnings().some(({ problem }) => String(problem).includes('the API server is away')),
    );
    away = false;
    await eventually('it was taken in the end', () => two.lastHeard(one).request != null);
    two.refuse = () => {
      throw new TributaryError('Invalid', 'no such namespace');
    };
    one.say(two, { request: { ...request, namespaces: ['other'] } });
    const told = (): number => one.warnings().filter(({ problem }) => problem === 'no such namespace').length;
    await eventually('one was told', () => told() === 1);
    one.say(two, { request: { ...request, namespaces: ['another'] } });
    one.say(two, { request: { ...request, namespaces: ['yet-another'] } });
    await linked(one, two);
    expect(told()).toBe(1);
  });

  test('says nothing while it is not known what is to be said', async () => {
    const [one, two] = [await start(), await start()];
    let ready = false;
    const says = one.says.get.bind(one.says);
    one.says.get = (id) => {
      if (!ready) throw new Error('not yet');
      return says(id);
    };
    one.say(two, { request });
    one.dial(two);
    await linked(one, two);
    expect(two.heard).toEqual([]);
    ready = true;
    await eventually('it was said', () => two.lastHeard(one).request != null);
  });

  test('calls: answered, refused, unknown, in time', async () => {
    const [one, two] = [await start({ registry: { times: { callMs: 300 } } }), await start()];
    await expect(one.registry.call(two.id, 'credential', {})).rejects.toMatchObject({ code: 'Unreachable' });
    one.dial(two);
    await linked(one, two);
    await expect(one.registry.call(two.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
    await one.registry.call(two.id, 'dial', { stream: 'stream-1' });
    expect(two.dialledBack).toEqual([{ from: one.id, stream: 'stream-1' }]);
    two.credential = async () => {
      throw new TributaryError('Forbidden', 'not\nyours');
    };
    await expect(one.registry.call(two.id, 'credential', {})).rejects.toMatchObject({
      code: 'Forbidden',
      message: 'the peer answered: not yours',
    });
    two.credential = async () => {
      throw new Error('secret inner workings');
    };
    await expect(one.registry.call(two.id, 'credential', {})).rejects.toMatchObject({
      code: 'Unavailable',
      message: 'the peer answered: internal error',
    });
    two.credential = async () => ({ token: 'x'.repeat(20_000), expires: 'never' });
    await expect(one.registry.call(two.id, 'credential', {})).rejects.toMatchObject({ code: 'Invalid' });
    let aborted = false;
    two.credential = async (_peer, signal) => {
      signal.addEventListener('abort', () => (aborted = true));
      return new Promise(() => undefined);
    };
    await expect(one.registry.call(two.id, 'credential', {})).rejects.toMatchObject({ code: 'Unreachable' });
    const waiting = one.registry.call(two.id, 'credential', {});
    const failed = waiting.catch((error: unknown) => error);
    await two.stop();
    nodes = nodes.filter((node) => node !== two);
    expect(await failed).toMatchObject({ code: 'Unreachable' });
    expect(aborted).toBe(true);
  });
});

describe('which link stays', () => {
  test('of two simultaneous ones the same at both ends, fifty times', async () => {
    for (let round = 0; round < 50; round++) {
      const [one, two] = [await start(), await start()];
      one.dial(two);
      two.dial(one);
      await linked(one, two);
      const lower = one.id < two.id ? one : two;
      const higher = lower === one ? two : one;
      const agree = (): boolean => {
        const [a, b] = [lower.registry.view(higher.id), higher.registry.view(lower.id)];
        return a !== undefined && b !== undefined && a.dialledBy !== b.dialledBy;
      };
      await eventually('both agree', agree);
      await eventually(
        'one connection is left',
        () => one.endpoint.connections + two.endpoint.connections === 1,
      );
      expect(agree()).toBe(true);
      expect([...one.registry.views()]).toHaveLength(1);
      expect([...two.registry.views()]).toHaveLength(1);
      await Promise.all([one.stop(), two.stop()]);
      nodes = [];
    }
  });

  test('a peer that was killed and came back is linked again, and hears all again', async () => {
    const identity = Identity.generate();
    const one = await start();
    let two = await start({ identity });
    one.say(two, { request });
    const address = two.address;
    one.dial(two);
    for (let round = 0; round < 3; round++) {
      await eventually('heard', () => two.lastHeard(one).request != null);
      await two.stop();
      await eventually('noticed', () => one.registry.view(two.id) === undefined);
      two = await start({ identity, endpoint: { port: Number(address.split(':')[1]) } });
    }
    await eventually('heard', () => two.lastHeard(one).request != null);
  });

  test('a peer that has moved is linked at its new endpoint', async () => {
    const identity = Identity.generate();
    const one = await start();
    const before = await start({ identity });
    one.dial(before);
    await linked(one, before);
    const after = await start({ identity });
    one.dial(after);
    expect(one.registry.view(after.id)?.endpoint).toBe(before.address);
    await before.stop();
    await eventually('moved', () => one.registry.view(after.id)?.endpoint === after.address);
  });
});

describe('whom not to link with', () => {
  const problemOf = async (one: PeeringNode, target: string, reason: string): Promise<string> => {
    await eventually(`problem ${reason}`, () => one.registry.problem(target)?.reason === reason);
    return one.registry.problem(target)?.message ?? '';
  };

  test('another identity than the wanted one: said with who answered, logged once', async () => {
    const [one, two] = [await start({ registry: { times: { baseMs: 1, capMs: 5 } } }), await start()];
    const wanted = Identity.generate().clusterID;
    one.registry.setTargets([{ name: 'x', clusterID: wanted, endpoints: [two.address] }]);
    expect(await problemOf(one, 'x', 'WrongIdentity')).toBe(`${two.address} is ${two.id}, not ${wanted}`);
    expect(one.registry.problem('x')?.answeredBy).toBe(two.id);
    const handshakes = (): number => two.endpoint.connections;
    let seen = 0;
    await eventually('it was dialled again and again', () => (seen += handshakes()) > 5);
    expect(one.warnings()).toHaveLength(1);
    expect(two.registry.view(one.id)).toBeUndefined();
    expect(two.warnings()).toEqual([]);
  });

  test('nobody in particular: only the identity is learnt', async () => {
    const [one, two] = [await start(), await start()];
    one.registry.setTargets([{ name: 'x', endpoints: [two.address] }]);
    expect(await problemOf(one, 'x', 'IdentityUnconfirmed')).toContain(two.id);
    expect(one.registry.problem('x')?.answeredBy).toBe(two.id);
    expect(two.registry.view(one.id)).toBeUndefined();
    one.dial(two);
    await linked(one, two);
    expect(one.registry.problem('x')).toBeUndefined();
  });

  test('ourselves, whoever says otherwise', async () => {
    const one = await start();
    const other = Identity.generate().clusterID;
    one.registry.setTargets([
      { name: 'own', clusterID: one.id, endpoints: [one.address] },
      { name: 'posing', clusterID: other, endpoints: [one.address] },
      { name: 'unknown', endpoints: [one.address] },
    ]);
    for (const name of ['own', 'posing', 'unknown']) {
      expect(await problemOf(one, name, 'WrongIdentity')).toContain('this cluster itself');
    }
    expect([...one.registry.views()]).toEqual([]);
  });

  test('nobody there, and nowhere to go', async () => {
    const [one, two] = [await start(), await start()];
    await two.stop();
    nodes = [one];
    const clusterID = two.id;
    one.registry.setTargets([
      { name: 'gone', clusterID, endpoints: ['127.0.0.1:1', '[::1]:1', 'not an endpoint'] },
      { name: 'nowhere', endpoints: [] },
    ]);
    const message = await problemOf(one, 'gone', 'EndpointUnreachable');
    for (const part of ['127.0.0.1:1', '::1', 'HOST:PORT']) expect(message).toContain(part);
    await problemOf(one, 'nowhere', 'NoEndpoint');
  });

  test('an expired leaf, a stolen identity certificate, no certificate', async () => {
    const identity = Identity.generate();
    const expired = await issueLeaf(identity, { nowMs: Date.now() - 9e7, lifeMs: 8e7 });
    const [one, two] = [await start(), await start({ identity, leaf: expired })];
    one.dial(two);
    expect(await problemOf(one, two.id, 'WrongIdentity')).toContain('has expired');
    // The other way round it is the endpoint that refuses.
    two.dial(one);
    expect(await problemOf(two, one.id, 'EndpointUnreachable')).toContain('closed by the peer after TLS');
    expect(
      one
        .warnings()
        .map(({ error }) => String(error))
        .join(),
    ).toContain('has expired');
    // Somebody else's leaf in front of that identity's certificate.
    const own = await issueLeaf(Identity.generate(), { nowMs: Date.now(), lifeMs: 1e6 });
    const good = await issueLeaf(identity, { nowMs: Date.now(), lifeMs: 1e6 });
    const [leaf = ''] = own.certificate.split(/(?<=-----END CERTIFICATE-----\n)/);
    const [, authority = ''] = good.certificate.split(/(?<=-----END CERTIFICATE-----\n)/);
    const thief = await start({ leaf: { certificate: leaf + authority, key: own.key } });
    one.registry.setTargets([{ name: 'thief', clusterID: two.id, endpoints: [thief.address] }]);
    await eventually('refused', () =>
      (one.registry.problem('thief')?.message ?? '').includes('not signed by the identity'),
    );
  });

  test('a version that we do not speak: both ends say so', async () => {
    const one = await start({ registry: { protocols: [1] } });
    const two = await start({ registry: { protocols: [2, 3] } });
    one.dial(two);
    two.dial(one);
    expect(await problemOf(one, two.id, 'IncompatibleProtocol')).toContain('no common protocol');
    expect(await problemOf(two, one.id, 'IncompatibleProtocol')).toContain('no common protocol');
    expect([...one.registry.views(), ...two.registry.views()]).toEqual([]);
  });

  test('of several versions the highest common one is spoken', async () => {
    const one = await start({ registry: { protocols: [1, 2, 4] } });
    const two = await start({ registry: { protocols: [1, 2, 3] } });
    one.dial(two);
    await linked(one, two);
    expect(one.registry.view(two.id)?.protocol).toBe(2);
    expect(two.registry.view(one.id)?.protocol).toBe(2);
  });
});

describe('network keys', () => {
  test('are proved without being sent, also when they come later', async () => {
    const key = Buffer.alloc(32, 7);
    let keys = [{ name: 'ours', key }];
    const one = await start({ registry: { networkKeys: () => [{ name: 'home', key }] } });
    const two = await start({
      registry: { networkKeys: () => keys },
    });
    one.dial(two);
    await linked(one, two);
    expect(one.registry.view(two.id)?.networkKeys).toEqual(['home']);
    expect(two.registry.view(one.id)?.networkKeys).toEqual(['ours']);
    keys = [{ name: 'another', key: Buffer.alloc(32, 8) }];
    two.registry.describe();
    await eventually('it proves nothing', () => one.registry.view(two.id)?.networkKeys.length === 0);
    expect(two.registry.view(one.id)?.networkKeys).toEqual([]);
  });
});

test('a link that we dialled ends when nobody wants anything, and not before', async () => {
  let looks = 0;
  const clock: Clock = {
    ...systemClock,
    after: (ms, callback) =>
      systemClock.after(ms, () => {
        // On a grid: a little more or less than 50.
        if (ms > 30 && ms < 65) looks++;
        callback();
      }),
  };
  const [one, two] = [await start({ registry: { reapMs: 50, clock } }), await start()];
  two.say(one, { offer: { offer: {} as Offer, signature: 'c2lnbmF0dXJl' } });
  one.say(two, { request });
  one.dial(two);
  await eventually('heard', () => two.lastHeard(one).request != null);
  // Wanted, it is not looked at.
  expect(looks).toBe(0);
  one.registry.setTargets([]);
  one.say(two, {});
  await eventually('the withdrawal arrived', () => two.lastHeard(one).request === null);
  const seen = looks;
  await eventually('it was looked at again', () => looks >= seen + 3);
  expect(one.registry.view(two.id)).toBeDefined();
  two.say(one, {});
  await eventually('ended', () => one.registry.view(two.id) === undefined);
});
