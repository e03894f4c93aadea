/**
 * Numbered UDP packets there and back. `node udp-probes.ts echo PORT` sends each back; `node udp-probes.ts send HOST PORT
 * COUNT` sends one every 5 ms, roughly; it says `began` with the first answer, and in the end, as JSON, what has become of
 * them (ProbeRun).
 */
import { createSocket, type Socket } from 'node:dgram';

export interface ProbeRun {
  sent: number;
  lost: number;
  /** Longest time without an answer, in milliseconds. */
  gapMs: number;
  /** Longest time between two packets that were sent: this part of a gap may come from this program. */
  pauseMs: number;
}

const INTERVAL_MS = 5;
const LAST_ANSWERS_MS = 1_000;
/** A program that is not run for a while must not lose what has arrived. */
const BUFFER = 4 * 1024 * 1024;

function echo(port: number): void {
  const socket = open();
  socket.on('message', (packet, { port: from, address }) => socket.send(packet, from, address));
  socket.bind(port, () => console.log('listening'));
}

async function send(host: string, port: number, count: number): Promise<void> {
  const socket = open();
  const sent: number[] = [];
  const arrivals = new Map<number, number>();
  socket.on('message', (packet) => {
    if (arrivals.size === 0) console.error('began');
    arrivals.set(packet.readUInt32BE(0), performance.now());
  });
  await new Promise<void>((resolve) => socket.bind(0, resolve));
  while (sent.length < count) {
    // Late packets are not sent afterwards: a burst would hide gaps.
    const packet = Buffer.alloc(64);
    packet.writeUInt32BE(sent.length, 0);
    // While there is no route, nothing is sent; that counts as a loss.
    socket.send(packet, port, host, () => undefined);
    sent.push(performance.now());
    await pause(INTERVAL_MS);
  }
  await pause(LAST_ANSWERS_MS);
  socket.close();
  const times = [...arrivals.values()].toSorted((a, b) => a - b);
  const run: ProbeRun = {
    sent: count,
    lost: count - arrivals.size,
    // From the first packet sent to the last; packets without an answer are also a gap.
    gapMs: longest([sent[0] ?? 0, ...times, Math.max(times.at(-1) ?? 0, sent.at(-1) ?? 0)]),
    pauseMs: longest(sent),
  };
  console.log(JSON.stringify(run));
}

function open(): Socket {
  const socket = createSocket({ type: 'udp4', recvBufferSize: BUFFER, sendBufferSize: BUFFER });
  socket.on('error', (error) => console.error(error.message));
  return socket;
}

const longest = (times: readonly number[]): number =>
  Math.round(Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time))));

const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const [mode = '', ...rest] = process.argv.slice(2);
if (mode === 'echo') echo(Number(rest[0]));
else await send(rest[0] ?? '', Number(rest[1]), Number(rest[2]));
