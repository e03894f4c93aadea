/**
 * `echo PORT`: answers datagrams with the same and where they came from. `send HOST PORT`: a numbered one every 10
 * ms. A line on standard input asks for the counts: `look`, or `mark`, which also begins a new count.
 */
import { createSocket } from 'node:dgram';

export interface DatagramsReport {
  sent: number;
  answered: number;
  /** Longest time between two answers, up to now. */
  gapMs: number;
  /** Since the last answer. */
  silentMs: number;
  /** Longest time between two datagrams that were sent: this part of a gap may come from load. */
  pauseMs: number;
  /** Our address, as the other end sees it. */
  seenAs: string;
}

const EVERY_MS = 10;
const NONE = { sent: 0, answered: 0, gapMs: 0, pauseMs: 0, seenAs: '' };
const [, , what, ...rest] = process.argv;

function echo(port: number): void {
  const socket = createSocket('udp4');
  socket.on('message', (data, { address, port }) =>
    socket.send(`${data.toString()} ${address}`, port, address),
  );
  socket.on('error', () => undefined);
  socket.bind(port, () => console.log('ready'));
}

function send(host: string, port: number): void {
  const socket = createSocket('udp4');
  let number = 0;
  let last = performance.now();
  let sentLast = last;
  let count = NONE;
  const answered = new Set<string>();
  socket.on('message', (data) => {
    const [id = '', seenAs = ''] = data.toString().split(' ');
    const now = performance.now();
    count = { ...count, gapMs: Math.max(count.gapMs, now - last), seenAs };
    last = now;
    if (!answered.has(id)) count.answered += 1;
    answered.add(id);
  });
  // There is no route for a moment, so what is sent now is lost.
  socket.on('error', () => undefined);
  socket.bind(0, () => {
    setInterval(() => {
      const now = performance.now();
      count = { ...count, sent: count.sent + 1, pauseMs: Math.max(count.pauseMs, now - sentLast) };
      sentLast = now;
      socket.send(String(++number), port, host, () => undefined);
    }, EVERY_MS);
  });
  process.stdin.on('data', (data) => {
    const silentMs = performance.now() - last;
    const report: DatagramsReport = { ...count, gapMs: Math.max(count.gapMs, silentMs), silentMs };
    console.log(JSON.stringify(report));
    if (data.toString().includes('mark')) count = NONE;
  });
}

if (what === 'echo') echo(Number(rest[0]));
else send(rest[0] ?? '', Number(rest[1]));
process.stdin.on('end', () => process.exit(0)).resume();
