/**
 * Asks the LAN for clusters over multicast DNS, some times, and prints in how many milliseconds each answer came (JSON; null: none came).
 *
 *     node bench/lan/ask.ts OWN_ADDRESS TIMES
 */
import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { decode, encode } from 'dns-packet';

const GROUP = '224.0.0.251';
const PORT = 5353;
const TYPE = '_tributary._tcp.local';
/** The same record is sent at most once in a second on a link (RFC 6762, section 6). */
const REST_MS = 1_100;
/** By chance longer, so that no answer falls in step with the question. */
const JITTER_MS = 200;
const PATIENCE_MS = 3_000;

const [address = '', times = '0'] = process.argv.slice(2);
const socket = createSocket({ type: 'udp4', reuseAddr: true });
socket.bind(PORT);
await once(socket, 'listening');
socket.addMembership(GROUP, address);
socket.setMulticastInterface(address);
socket.setMulticastTTL(255);
const found: (number | null)[] = [];
for (let time = 0; time < Number(times); time++) {
  await sleep(REST_MS + randomInt(JITTER_MS));
  found.push(await ask(socket));
}
socket.close();
process.stdout.write(JSON.stringify(found));

async function ask(from: Socket): Promise<number | null> {
  const question = encode({ type: 'query', questions: [{ type: 'PTR', name: TYPE }] });
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const hear = (message: Buffer): void => {
    if (isAnswer(message)) resolve(performance.now() - began);
  };
  from.on('message', hear);
  const began = performance.now();
  from.send(question, PORT, GROUP);
  const timer = setTimeout(() => resolve(null), PATIENCE_MS);
  const took = await promise;
  clearTimeout(timer);
  from.off('message', hear);
  return took;
}

/** With all that is needed to dial: the pointer, and the service that it points to. */
function isAnswer(message: Buffer): boolean {
  const { type, answers = [], additionals = [] } = decode(message);
  if (type !== 'response') return false;
  const hasPointer = answers.some((record) => record.type === 'PTR' && record.name === TYPE);
  return hasPointer && [...answers, ...additionals].some((record) => record.type === 'SRV');
}
