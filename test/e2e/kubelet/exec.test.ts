import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod } from '../../support/e2e/pods.ts';
import { streamsOf } from './support/stream-metric.ts';
import { resize, untilAnswer } from './support/terminal.ts';
import { TRANSPORTS, World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('exec');
  await world.runPod(aPod('target'));
});

afterAll(async () => world.close());

describe.each(TRANSPORTS)('kubectl exec over %s', (transport, env) => {
  test('goes over that transport all the way to the node', async () => {
    const streams = await streamsOf(world.home, 'exec', async () => {
      await world.ask(['exec', 'target', '--', 'true'], { env });
    });
    const isWebSocket = transport === 'WebSocket';
    expect(streams).toEqual({
      webSocket: isWebSocket ? 1 : 0,
      spdy: isWebSocket ? 0 : 1,
      handedThrough: 1,
      translated: 0,
    });
  });

  test('returns the exit code, and keeps standard error apart', async () => {
    const script = 'echo out; echo err >&2; exit 7';
    const { code, stdout, stderr } = await world.kubectl(['exec', 'target', '--', 'sh', '-c', script], {
      env,
    });
    expect(stdout).toBe('out\n');
    expect(stderr).toBe('err\ncommand terminated with exit code 7\n');
    expect(code).toBe(7);
  });

  test('-i passes standard input on, and its end', async () => {
    const stdin = 'x'.repeat(300_000);
    const counted = await world.ask(['exec', '-i', 'target', '--', 'wc', '-c'], { env, stdin });
    expect(counted.trim()).toBe('300000');
  });

  test('a command that does not exist is said to be so', async () => {
    const { code, stderr } = await world.kubectl(['exec', 'target', '--', 'no-such-program'], { env });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/no-such-program.*executable file not found/s);
  });

  test('-it gives a terminal of the right size, and follows when it changes', async () => {
    const script = 'test -t 0 && stty -echo && while read -r line; do echo "$line: $(stty size)"; done';
    const exec = world.startOnTerminal(
      ['exec', '-it', 'target', '--', 'sh', '-c', script],
      { rows: 31, columns: 97 },
      { env, timeoutMs: 60_000 },
    );
    await untilAnswer(exec, 'size', 'size: 31 97');
    await resize(exec, { rows: 44, columns: 133 });
    await untilAnswer(exec, 'size', 'size: 44 133');
    exec.write('\u0004');
    expect((await exec.ended).code).toBe(0);
  });
});

test('output of 64 MB arrives whole', async () => {
  // It ends a little later than its output: kubectl itself loses what it has not read when an API server closes (decision 101).
  const script = 'head -c 64000000 /dev/zero | tr "\\0" x; sleep 3';
  expect(await world.bytesOf(['exec', 'target', '--', 'sh', '-c', script])).toBe(64_000_000);
});

test('twenty at once', async () => {
  const numbers = Array.from({ length: 20 }, (_, index) => String(index));
  const answers = await Promise.all(
    numbers.map(async (number) => world.ask(['exec', 'target', '--', 'echo', number], { timeoutMs: 60_000 })),
  );
  expect(answers).toEqual(numbers.map((number) => `${number}\n`));
});
