import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod, statusOf } from '../../support/e2e/pods.ts';
import { resize, untilAnswer } from './support/terminal.ts';
import { TRANSPORTS, World } from './support/world.ts';

const ECHO =
  'echo ready; while read -r line; do echo "heard $line"; echo "err $line" >&2; done; echo end of input';
const SIZES = 'stty -echo; while read -r line; do echo "$line: $(stty size)"; done';

let world: World;

beforeAll(async () => {
  world = await World.open('attach');
});

afterAll(async () => world.close());

describe.each(TRANSPORTS)('kubectl attach over %s', (transport, env) => {
  const suffix = transport.toLowerCase();

  test('-i passes input on and prints both outputs, until the container ends', async () => {
    const name = `echo-${suffix}`;
    const container = { stdin: true, stdinOnce: true };
    await world.runPod(aPod(name, ECHO, { container, spec: { restartPolicy: 'Never' } }));
    const attach = world.start(['attach', '-i', name], { env, keepStdin: true });
    attach.write('hello\n');
    await attach.waitFor(/heard hello/);
    await attach.waitFor(/err hello/);
    attach.closeInput();
    const { code, stdout, stderr } = await attach.ended;
    expect(code).toBe(0);
    expect(stdout).toContain('heard hello\nend of input\n');
    expect(stderr).toContain('err hello');
    expect(stdout).not.toContain('err hello');
    await world.untilPod(name, 'has ended', (pod) => statusOf(pod)?.state?.terminated?.exitCode === 0);
  });

  test('-it has the size of the terminal, and follows when it changes', async () => {
    const name = `sizes-${suffix}`;
    await world.runPod(aPod(name, SIZES, { container: { stdin: true, tty: true } }));
    const size = { rows: 29, columns: 91 };
    const attach = world.startOnTerminal(['attach', '-it', name], size, { env, timeoutMs: 60_000 });
    await untilAnswer(attach, 'size', 'size: 29 91');
    await resize(attach, { rows: 40, columns: 120 });
    await untilAnswer(attach, 'size', 'size: 40 120');
    await attach.stop();
  });
});

test('kubectl run -it: creates the pod, talks to it, removes it', async () => {
  const overrides = JSON.stringify({
    spec: {
      nodeSelector: { 'tributary.dev/virtual-node': 'foreign' },
      tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
    },
  });
  const { code, stdout } = await world.kubectl(
    [
      'run',
      'once',
      '-i',
      '--rm',
      '--restart=Never',
      '--image=lab.local/busybox:1',
      `--overrides=${overrides}`,
      '--',
      'sh',
      '-c',
      'read -r line; echo "got $line"',
    ],
    { stdin: 'this\n', timeoutMs: 60_000 },
  );
  expect(stdout).toContain('got this');
  expect(code).toBe(0);
  await world.untilGone('once');
});
