import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { podPath } from '../../support/e2e/api.ts';
import { aPod } from '../../support/e2e/pods.ts';
import { ChannelSocket } from '../../support/e2e/web-socket.ts';
import { World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('websocket');
  await world.runPod(
    aPod('console', 'nc -ll -p 9000 -e cat & trap exit TERM; while :; do sleep 1 & wait $!; done'),
  );
});

afterAll(async () => world.close());

const open = async (query: string, protocol: string, subresource = 'exec'): Promise<ChannelSocket> =>
  ChannelSocket.open(
    world.lab.cluster('home'),
    `${podPath('websocket', 'console')}/${subresource}?${query}`,
    protocol,
  );

const script = (text: string): string =>
  `stdin=true&stdout=true&stderr=true&command=sh&command=-c&command=${encodeURIComponent(text)}`;

describe.each([
  'channel.k8s.io',
  'base64.channel.k8s.io',
  'v4.channel.k8s.io',
  'v4.base64.channel.k8s.io',
  'v5.channel.k8s.io',
])('exec by a client that speaks %s', (protocol) => {
  test('input, both outputs and the status have channels of their own', async () => {
    const socket = await open(
      script('read -r line; echo "out $line"; echo "err $line" >&2; exit 7'),
      protocol,
    );
    expect(socket.protocol).toBe(protocol);
    socket.send(0, 'hello\n');
    await socket.untilText(1, 'out hello\n');
    await socket.untilText(2, 'err hello\n');
    await socket.untilText(3, 'exit');
    expect(socket.text(3)).toMatch(
      /^v[45]/.test(protocol) ? /"reason":"NonZeroExitCode".*"message":"7"/ : /exit code 7|exit status 7/,
    );
    await socket.untilClosed();
  });
});

test('v5: closing the input channel ends the input, and the rest goes on', async () => {
  const socket = await open(script('cat; echo end of input'), 'v5.channel.k8s.io');
  socket.send(0, 'some\n');
  await socket.untilText(1, 'some\n');
  socket.closeChannel(0);
  await socket.untilText(1, 'end of input\n');
  await socket.untilText(3, '"status":"Success"');
  await socket.untilClosed();
});

test('v5: the size of the terminal comes on channel 4', async () => {
  const command = 'until stty size | grep "61 161"; do :; done';
  const query = `${script(command).replace('stderr=true&', '')}&tty=true`;
  const socket = await open(query, 'v5.channel.k8s.io');
  socket.send(4, JSON.stringify({ Width: 161, Height: 61 }));
  await socket.untilText(1, '61 161');
  await socket.untilClosed();
});

test('port-forward in channels, as of v4.channel.k8s.io', async () => {
  const socket = await open('ports=9000', 'v4.channel.k8s.io', 'portforward');
  socket.send(0, 'over and out\n');
  await socket.untilText(0, 'over and out\n');
  socket.close();
});

test('a pod that does not exist is said to be so', async () => {
  const path = `${podPath('websocket', 'nobody')}/exec?command=true&stdout=true`;
  await expect(ChannelSocket.open(world.lab.cluster('home'), path, 'v5.channel.k8s.io')).rejects.toThrow(
    '404',
  );
});
