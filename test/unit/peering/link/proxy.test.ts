import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isDialable } from '../../../../src/lib/never-dialled.ts';
import { Dialer } from '../../../../src/peering/link/dialer.ts';
import { eventually } from '../../../support/eventually.ts';
import { ConnectProxy } from '../../../support/network/connect-proxy.ts';
import { linked, PeeringNode, type PeeringNodeOptions } from '../../../support/peering/peering-node.ts';

let proxy: ConnectProxy;
let nodes: PeeringNode[];
beforeEach(async () => {
  nodes = [];
  proxy = await new ConnectProxy().start();
});
afterEach(async () => {
  await Promise.all(nodes.map(async (node) => node.stop()));
  await proxy.stop();
});

async function start(options: PeeringNodeOptions = {}): Promise<PeeringNode> {
  const node = await new PeeringNode(options).start();
  nodes.push(node);
  return node;
}

const { signal } = new AbortController();
/** No name server knows it: only the proxy does. */
const NAME = 'milan.invalid:7443';

test('a link goes through the proxy, which is given the name that people have chosen', async () => {
  const [one, two] = [await start({ registry: { proxies: proxy.settings() } }), await start()];
  proxy.routes.set(NAME, two.endpoint.port ?? 0);
  one.registry.setTargets([{ name: 't', clusterID: two.id, endpoints: [NAME], chosenHere: [NAME] }]);
  await linked(one, two);
  expect(one.registry.view(two.id)).toMatchObject({ dialledBy: 'Us', endpoint: NAME });
  expect(proxy.asked.map(({ target }) => target)).toEqual([NAME]);
});

test('an endpoint in NO_PROXY is dialled directly', async () => {
  const settings = proxy.settings('127.0.0.1');
  const [one, two] = [await start({ registry: { proxies: settings } }), await start()];
  one.dial(two);
  await linked(one, two);
  expect(proxy.asked).toEqual([]);
});

test('what the proxy refuses is told with the target', async () => {
  const one = await start({ registry: { proxies: proxy.settings() } });
  proxy.answer = (socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  one.registry.setTargets([{ name: 't', endpoints: [NAME], chosenHere: [NAME] }]);
  await eventually('a problem', () => one.registry.problem('t') !== undefined);
  expect(one.registry.problem('t')?.message).toContain(
    `the proxy ${proxy.name} does not permit it (403): let it permit CONNECT to milan.invalid at port 7443`,
  );
});

// As inet_aton reads them, so that no name server is needed.
describe('a name that a peer has told is looked up here, since the proxy could be led to itself by it', () => {
  const told = (): Dialer =>
    new Dialer({
      clock: systemClock,
      proxies: proxy.settings(),
      mayDial: (_endpoint, address) => isDialable(address),
    });

  test('and the proxy is given the address', async () => {
    await expect(told().secure('10.66051:7443', signal)).rejects.toThrow('cannot reach it (502)');
    expect(proxy.asked.map(({ target }) => target)).toEqual(['10.1.2.3:7443']);
  });

  test.each(['127.1:7443', '0x7f000001:7443', '169.16689662:80', '169.254.169.254:80'])(
    '%s leads nowhere',
    async (endpoint) => {
      await expect(told().secure(endpoint, signal)).rejects.toThrow(
        `${endpoint}: no other cluster can be there, so it is not dialled`,
      );
      expect(proxy.asked).toEqual([]);
    },
  );

  test('one that is unknown here says where it was looked up', async () => {
    await expect(told().secure(NAME, signal)).rejects.toMatchObject({
      code: 'Unreachable',
      message: expect.stringContaining('is looked up in this cluster, and not by the proxy'),
    });
    expect(proxy.asked).toEqual([]);
  });

  test('a name that no line of a header can hold is not asked for', async () => {
    const dialer = new Dialer({ clock: systemClock, proxies: proxy.settings() });
    await expect(dialer.secure('a\u0000b:7443', signal)).rejects.toMatchObject({ code: 'Invalid' });
    expect(proxy.asked).toEqual([]);
  });
});
