import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { World } from './support/world.ts';

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const NONE = { cpu: '0', memory: '0', 'ephemeral-storage': '0' };

test('the virtual node shows what is left when what each pod costs besides is set aside, and follows the offer', async () => {
  const { provider } = world;
  await world.start();
  await world.established();
  const shown = (): object | undefined => world.virtualNode('milan')?.spec.resources;
  expect(shown()).toEqual({ cpu: '8', memory: '16Gi', pods: '100' });
  const tell = async (what: string, cpu: string, pods: string): Promise<void> => {
    provider.renew();
    world.say();
    await world.until(what, () => {
      const now = world.virtualNode('milan')?.spec.resources;
      return now?.['cpu'] === cpu && now['pods'] === pods;
    });
  };
  provider.more = { podOverhead: { cpu: '10m' } };
  await tell('overhead', '7', '100');
  provider.defaultRequests = { ...NONE, cpu: '190m' };
  await tell('default requests on top', '4', '20');
  provider.defaultRequests = NONE;
  provider.more = {};
  await tell('nothing', '8', '100');
  provider.defaultRequests = undefined;
  await tell('an earlier version', '8', '80');
  // What was agreed on is the provider's all the time: it bounds what is used.
  expect(JSON.parse(provider.contract?.text ?? '{}')).toMatchObject({
    resources: { cpu: '8', memory: '16Gi', pods: '100' },
  });
});
