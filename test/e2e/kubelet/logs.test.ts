import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod, BUSYBOX, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

/** Three old lines, then one each time the file /tmp/more grows. */
const TALKER = 'echo one; echo two; echo three; touch /tmp/more; exec tail -n +1 -f /tmp/more';
/** Ends by itself the first time, so that its log becomes the previous one. */
const RESTARTER =
  'if [ -e /data/again ]; then echo second life; exec sleep 3600; fi; touch /data/again; echo first life; exit 1';

let world: World;

beforeAll(async () => {
  world = await World.open('logs');
  const volumes = { volumes: [{ name: 'data', emptyDir: {} }] };
  const restarter = aPod('restarter', RESTARTER, {
    spec: volumes,
    container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
  });
  const quiet = { name: 'other', image: BUSYBOX, command: ['sh', '-c', 'echo other; exec sleep 3600'] };
  const pair = aPod('pair', 'echo mine; exec sleep 3600') as { spec: { containers: object[] } };
  pair.spec.containers.push(quiet);
  await Promise.all([
    world.runPod(aPod('talker', TALKER)),
    world.runPod(pair),
    world.home.create('/api/v1/namespaces/logs/pods', restarter),
  ]);
  // A container that runs has not necessarily said anything yet.
  await untilSaid('talker', 'three');
  await untilSaid('pair', 'mine');
  await untilSaid('pair', 'other', ['-c', 'other']);
});

afterAll(async () => world.close());

const untilSaid = async (pod: string, words: string, args: readonly string[] = []): Promise<void> => {
  await until(`${pod} has said "${words}"`, async () =>
    (await world.ask(['logs', pod, ...args])).includes(words),
  );
};

const say = async (line: string): Promise<string> =>
  world.ask(['exec', 'talker', '--', 'sh', '-c', `echo ${line} >> /tmp/more`]);

describe('kubectl logs', () => {
  test('prints everything', async () => {
    expect(await world.ask(['logs', 'talker'])).toMatch(/^one\ntwo\nthree\n/);
  });

  test('-f follows', async () => {
    const follower = world.start(['logs', '-f', 'talker']);
    await follower.waitFor(/three/);
    await say('followed');
    await follower.waitFor(/followed/);
    await follower.stop();
    expect(follower.stdout).toMatch(/^one\ntwo\nthree\n/);
  });

  test('-f ends when the container ends', async () => {
    await world.home.create(
      '/api/v1/namespaces/logs/pods',
      aPod('brief', 'echo hi; sleep 2; echo bye', {
        spec: { restartPolicy: 'Never' },
      }),
    );
    await world.untilPod('brief', 'has started', (pod) => {
      const { running, terminated } = statusOf(pod)?.state ?? {};
      return running !== undefined || terminated !== undefined;
    });
    expect(await world.ask(['logs', '-f', 'brief'])).toBe('hi\nbye\n');
  });

  test('--tail=0 -f prints only what is new', async () => {
    const follower = world.start(['logs', '-f', '--tail=0', '-v=6', 'talker']);
    // The request has been answered: what is written from now on is new.
    await follower.waitFor(/\/log\?.*status="200/);
    await say('new');
    await follower.waitFor(/^new$/m);
    await follower.stop();
    expect(follower.stdout).toBe('new\n');
  });

  test('--tail=1', async () => {
    await say('last');
    await until('the last line alone', async () => {
      const line = await world.ask(['logs', '--tail=1', 'talker']);
      return line === 'last\n';
    });
    expect(await world.ask(['logs', '--tail=0', 'talker'])).toBe('');
  });

  test('--since and --since-time leave out what is older', async () => {
    const stamped = await world.ask(['logs', '--timestamps', 'talker']);
    const third = /^(\S+) three$/m.exec(stamped)?.[1] ?? '';
    const after = new Date(Date.parse(third) + 1000).toISOString();
    const later = await world.ask(['logs', `--since-time=${after}`, 'talker']);
    expect(later).not.toContain('three');
    expect(await world.ask(['logs', '--since=1h', 'talker'])).toContain('one');
  });

  test('--timestamps', async () => {
    const output = await world.ask(['logs', '--timestamps', 'talker']);
    expect(output).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) one$/m);
  });

  test('-p prints what the container before the restart has said', async () => {
    await world.untilPod(
      'restarter',
      'has restarted',
      (pod) => statusOf(pod)?.restartCount === 1 && statusOf(pod)?.state?.running !== undefined,
    );
    expect(await world.ask(['logs', '-p', 'restarter'])).toBe('first life\n');
    await untilSaid('restarter', 'second life');
    expect(await world.ask(['logs', 'restarter'])).toBe('second life\n');
  });

  test('-p of a container that has not restarted is an error', async () => {
    const { code, stderr } = await world.kubectl(['logs', '-p', 'talker']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/previous terminated container "main" in pod "talker" not found/);
  });

  test('--limit-bytes', async () => {
    expect(await world.ask(['logs', '--limit-bytes=5', 'talker'])).toBe('one\nt');
  });

  test('--all-containers, with --prefix', async () => {
    const output = await world.ask(['logs', '--all-containers', '--prefix', 'pair']);
    expect(output.split('\n').sort().join('\n')).toBe('\n[pod/pair/main] mine\n[pod/pair/other] other');
  });

  test('-c of a container that does not exist is an error', async () => {
    const { code, stderr } = await world.kubectl(['logs', 'pair', '-c', 'nobody']);
    expect(code).toBe(1);
    expect(stderr).toContain('container nobody is not valid for pod pair');
  });
});
