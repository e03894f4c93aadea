import { afterEach, expect, test } from '@jest/globals';
import { type Running, World } from './support/world.ts';

let world: World;
afterEach(async () => world.down());

const established = async (tokenLifeMs: number): Promise<Running> => {
  world = await new World().up();
  world.provider.tokenLifeMs = tokenLifeMs;
  const running = await world.start();
  await world.established();
  return running;
};

const expires = (): number =>
  Date.parse(world.secret?.metadata.annotations?.['tributary.dev/credential-expires'] ?? '');

test('a token is renewed well before it ends, time and again, and never is there none that counts', async () => {
  await established(30_000);
  const lives: number[] = [];
  let least = Infinity;
  let lastExpiry = expires();
  world.home.storage.subscribe(({ resource, previous }) => {
    if (resource !== 'secrets' || previous === undefined) return;
    // What was there until this moment.
    least = Math.min(least, lastExpiry - world.clock.now());
    lives.push((lastExpiry = expires()));
  });
  await world.until('renewed five times', () => lives.length >= 5);
  expect(least).toBeGreaterThan(0);
  expect(world.kubeconfig?.token).toBe(`token-${world.provider.tokens}`);
  expect(world.advertisement?.status?.credentialExpires).toBeDefined();
});

test('a person has a token renewed, once for each word, also by the next process', async () => {
  const running = await established(3_600_000);
  const renew = (text: string): void => {
    const { storage } = world.home;
    const object = storage.get('advertisements.tributary.dev', world.id);
    if (object === undefined) throw new Error('no Advertisement');
    const annotations = { ...object.metadata.annotations, 'tributary.dev/renew': text };
    storage.update('advertisements.tributary.dev', {
      ...object,
      metadata: { ...object.metadata, annotations },
    });
  };
  renew('one');
  await world.until('renewed', () => world.kubeconfig?.token === 'token-2');
  renew('two');
  await world.until('renewed again', () => world.kubeconfig?.token === 'token-3');
  await running.stop();
  await world.start();
  await world.clock.advance(60_000);
  expect(world.kubeconfig?.token).toBe('token-3');
});

test('without a link the old token stays, and the first thing on a new one is another', async () => {
  await established(30_000);
  world.link(false);
  await world.until('about to end', () => world.clock.now() > expires() - 8000);
  expect(world.kubeconfig?.token).toBe('token-1');
  world.link(true);
  await world.until('renewed', () => world.kubeconfig?.token === 'token-2');
});

test('a provider that gives none is asked again, ever more rarely, and what is wrong is said', async () => {
  world = await new World().up();
  world.callFails = true;
  const { borrowing } = await world.start();
  await world.until('asked often', () => world.calls >= 4);
  await world.until('said', () => world.condition('CredentialValid')?.status === 'False');
  expect(world.condition('CredentialValid')).toMatchObject({ reason: 'NoLink' });
  expect(borrowing.report(world.id)).toMatchObject({ phase: 'Accepted', reason: 'SettingUp' });
  expect(world.virtualNode('milan')).toBeUndefined();
  world.callFails = false;
  await world.established();
});

test.each(['', 'white space', 'x'.repeat(20_000)])('a malformed token is not used', async (token) => {
  world = await new World().up();
  world.provider.credential = () => ({ token, expires: new Date(world.clock.now() + 60_000).toISOString() });
  await world.start();
  await world.until(
    'said',
    () => world.condition('CredentialValid')?.message.includes('a malformed token') ?? false,
  );
  expect(world.secret).toBeUndefined();
});

test('a token that the API server refuses is replaced', async () => {
  await established(600_000);
  const { storage } = world.home;
  const object = storage.get('virtualnodes.tributary.dev', 'milan');
  world.agents.dead = true;
  if (object === undefined) throw new Error('no VirtualNode');
  const condition = {
    type: 'CredentialsValid',
    status: 'False',
    reason: 'CredentialsRejected',
    message: '401',
  };
  storage.update('virtualnodes.tributary.dev', { ...object, status: { conditions: [condition] } });
  await world.until('renewed', () => world.kubeconfig?.token === 'token-2');
});

test('a Secret that somebody spoils or deletes is made anew', async () => {
  await established(600_000);
  const { storage } = world.home;
  const key = `tributary-system/tributary-kubeconfig-${world.id}`;
  const { secret } = world;
  if (secret === undefined) throw new Error('no Secret');
  storage.update('secrets', { ...secret, data: { kubeconfig: 'bm9uZQ==' } });
  await world.until('repaired', () => world.kubeconfigText()?.includes('token-1') ?? false);
  storage.remove('secrets', key);
  await world.until('there again', () => world.kubeconfigText()?.includes('token-1') ?? false);
});

test('a new token is used although the one before is dated later, since the clock was set back', async () => {
  await established(3_600_000);
  world.jump(-600_000);
  const { provider } = world;
  const next = provider.credential.bind(provider);
  provider.credential = () => {
    if (provider.tokens > 5) throw new Error('asked too often');
    return next();
  };
  const { storage } = world.home;
  const object = storage.get('advertisements.tributary.dev', world.id);
  if (object === undefined) throw new Error('no Advertisement');
  const annotations = { ...object.metadata.annotations, 'tributary.dev/renew': 'now' };
  storage.update('advertisements.tributary.dev', {
    ...object,
    metadata: { ...object.metadata, annotations },
  });
  await world.until('renewed', () => world.kubeconfig?.token === 'token-2');
  await world.clock.advance(60_000);
  expect([world.kubeconfig?.token, provider.tokens]).toEqual(['token-2', 2]);
});
