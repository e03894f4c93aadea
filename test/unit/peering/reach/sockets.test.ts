import { once } from 'node:events';
import { connect, type Server, type Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { eventually } from '../../../support/eventually.ts';
import { PeerListener } from '../../../../src/peering/reach/sockets.ts';

test('a listener outlives connections that it cannot accept', async () => {
  const accepted: Socket[] = [];
  const listener = await PeerListener.open('milan', { host: '127.0.0.1' }, (socket) => accepted.push(socket));
  const dialled: Socket[] = [];
  const dial = async (): Promise<void> => {
    const socket = connect({ host: '127.0.0.1', port: listener.port });
    dialled.push(socket);
    await once(socket, 'connect');
    await eventually('accepted', () => accepted.length === dialled.length);
  };
  await dial();
  const { server } = accepted[0] as Socket & { server: Server };
  // As Node does where file descriptors are short.
  expect(() => server.emit('error', new Error('accept EMFILE'))).not.toThrow();
  await dial();
  for (const socket of [...dialled, ...accepted]) socket.destroy();
  await listener.close();
});
