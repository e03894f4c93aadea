import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { TRANSPORTS, World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('debug');
  await world.runPod(aPod('patient'));
});

afterAll(async () => world.close());

// Without a profile kubectl asks for SYS_PTRACE, which the provider's Pod Security refuses.
const debug = (name: string): string[] => [
  'debug',
  'patient',
  '--profile=baseline',
  '--image=lab.local/busybox:1',
  '-c',
  name,
  '--target=main',
];

describe.each(TRANSPORTS)('kubectl debug over %s', (transport, env) => {
  test('adds a container that sees the processes of the target', async () => {
    const name = `look-${transport.toLowerCase()}`;
    const started = world.start([...debug(name), '-i', '--', 'sh'], {
      env,
      keepStdin: true,
      timeoutMs: 60_000,
    });
    started.write('ps; echo done\n');
    await started.waitFor(/trap "echo stopping.*done/s);
    // This comes last, because the last output of a container may be lost.
    started.write('exit 4\n');
    await started.ended;
    const pod = await world.untilPod('patient', `has seen ${name} end`, ({ status }) =>
      (status?.ephemeralContainerStatuses ?? []).some(
        (container) => container.name === name && container.state?.terminated?.exitCode === 4,
      ),
    );
    expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  });
});

test('two at the same moment both arrive', async () => {
  await Promise.all(
    ['first', 'second'].map(async (name) => world.ask([...debug(name), '--', 'sleep', '600'])),
  );
  await world.untilPod('patient', 'runs both', ({ status }) =>
    ['first', 'second'].every((name) =>
      status?.ephemeralContainerStatuses?.some(
        (container) => container.name === name && container.state?.running !== undefined,
      ),
    ),
  );
});

test('one that the provider refuses is an event, and the pod goes on', async () => {
  await world.kubectl([
    'debug',
    'patient',
    '--profile=sysadmin',
    '--image=lab.local/busybox:1',
    '-c',
    'mighty',
    '--',
    'sleep',
    '1',
  ]);
  await world.untilPod('patient', 'has the container in its spec', ({ spec }) =>
    (spec?.ephemeralContainers ?? []).some(({ name }) => name === 'mighty'),
  );
  await until(
    'an event with the reason',
    async () =>
      (await world.events('patient')).some((line) =>
        /FailedUpdate: .*mighty.*violates PodSecurity/.test(line),
      ),
    { seen: async () => world.events('patient') },
  );
  expect(await world.ask(['exec', 'patient', '-c', 'main', '--', 'echo', 'alive'])).toBe('alive\n');
});
