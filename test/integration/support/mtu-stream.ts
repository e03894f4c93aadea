/** `serve`: counts and prints the received bytes. `send HOST`: sends as much as possible. */
import { connect, createServer } from 'node:net';

export interface MtuStreamLine {
  event: 'received';
  bytes: number;
  connections: number;
}

const PORT = 5300;
const [, , what, host = ''] = process.argv;
if (what === 'serve') {
  const state = { bytes: 0, connections: 0 };
  createServer((socket) => {
    state.connections += 1;
    socket.on('data', (data) => (state.bytes += data.length)).on('error', () => undefined);
  }).listen(PORT, '0.0.0.0');
  setInterval(() => console.log(JSON.stringify({ event: 'received', ...state })), 50);
} else {
  const socket = connect(PORT, host);
  const data = Buffer.alloc(65_536);
  const fill = (): void => {
    while (socket.write(data));
  };
  socket.on('connect', fill).on('drain', fill);
}
process.stdin.on('end', () => process.exit(0)).resume();
