/** On loopback: 127.0.0.2 is the node, and 127.0.0.3 a ClusterIP. */
import { createSocket } from 'node:dgram';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

import { afterEach, describe, expect, test } from '@jest/globals';

import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { Listeners } from '../../../../src/lib/listeners.ts';
import { createLogger } from '../../../../src/lib/log.ts';
import { listen, portOf } from '../../../../src/server/listening.ts';
import { NodePorts } from '../../../../src/server/node-ports/node-ports.ts';
import type { WantedPort } from '../../../../src/server/node-ports/port.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const NODE = '127.0.0.2';
const CLUSTER_IP = '127.0.0.3';
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

interface World {
  ports: NodePorts;
  set: (wanted: readonly WantedPort[]) => void;
  log: string[];
}

const world = async (...wanted: readonly WantedPort[]): Promise<World> => worldOf(wanted);

async function worldOf(
  wanted: readonly WantedPort[],
  options: { clock?: Clock; maxOpen?: number } = {},
): Promise<World> {
  const log: string[] = [];
  const changed = new Listeners();
  let now = wanted;
  const ports = new NodePorts({
    host: NODE,
    wanted: () => now,
    onChange: changed.add,
    clock: systemClock,
    ...options,
    log: createLogger({ level: 'warn', now: () => 0, write: (line) => log.push(line) }),
  });
  ends.push(async () => ports.stop());
  await ports.start();
  const set = (next: readonly WantedPort[]): void => {
    now = next;
    changed.tell();
  };
  return { ports, set, log };
}

/** Answers each connection when the client has ended its half. */
async function service(words: string): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    let said = '';
    socket.setEncoding('utf8').on('data', (part: string) => (said += part));
    socket.on('end', () => socket.end(`${words}: ${said}`));
    socket.on('error', () => undefined);
  });
  ends.push(() => server.close());
  await listen(server, CLUSTER_IP, 0);
  return portOf(server) ?? 0;
}

/** One that nobody has now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await listen(server, NODE, 0);
  const port = portOf(server) ?? 0;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function wantedPort(words: string): Promise<WantedPort> {
  const [port, servicePort] = [await freePort(), await service(words)];
  return { protocol: 'TCP', port, clusterIP: CLUSTER_IP, servicePort, service: 'shop/web' };
}

/** Answers each datagram with what it says, and the port that it came from: that of its flow. */
async function wantedDatagrams(): Promise<WantedPort> {
  const echo = createSocket('udp4');
  ends.push(() => echo.close());
  echo.on('message', (data, { port, address }) =>
    echo.send(`echo ${data.toString()} ${port}`, port, address),
  );
  await new Promise<void>((resolve) => echo.bind({ address: CLUSTER_IP }, resolve));
  const [port, servicePort] = [await freePort(), echo.address().port];
  return { protocol: 'UDP', port, clusterIP: CLUSTER_IP, servicePort, service: 'shop/dns' };
}

async function dial(port: number, localAddress?: string): Promise<Socket> {
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ host: NODE, port, allowHalfOpen: true, ...from });
  ends.push(() => socket.destroy());
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('connect', resolve);
  socket.once('error', reject);
  await promise;
  return socket;
}

async function ask(port: number, words: string): Promise<string> {
  const socket = await dial(port);
  socket.end(words);
  return text(socket);
}

test('a connection is passed on, each direction until its own end', async () => {
  const one = await wantedPort('shop');
  await world(one);
  expect(await ask(one.port, 'hello')).toBe('shop: hello');
});

test('what is no longer wanted is closed with its connections, and what changes leads elsewhere', async () => {
  const [one, other] = [await wantedPort('one'), await wantedPort('other')];
  const { ports, set } = await world(one, other);
  const open = await dial(one.port);
  const ended = new Promise((resolve) => open.once('end', resolve).once('close', resolve));
  open.on('error', () => undefined);
  open.resume();
  set([{ ...other, servicePort: await service('moved') }]);
  await ended;
  await eventually('it leads elsewhere', async () => (await ask(other.port, 'hi')) === 'moved: hi');
  expect(ports.count).toBe(1);
  await expect(dial(one.port)).rejects.toThrow('ECONNREFUSED');
});

test('where the Service refuses, the connection ends', async () => {
  const one = { ...(await wantedPort('shop')), servicePort: await freePort() };
  await world(one);
  await expect(ask(one.port, 'hello').catch((error: unknown) => String(error))).resolves.not.toContain(
    'shop',
  );
});

test('a port that somebody has is named, and all others are served', async () => {
  const [taken, free] = [await wantedPort('taken'), await wantedPort('free')];
  const server = createServer();
  await listen(server, NODE, taken.port);
  const { ports, set, log } = await world(taken, free);
  expect(ports.count).toBe(1);
  expect(log.join()).toContain(`TCP ${taken.port} of Service shop/web is not served at ${NODE}`);
  expect(await ask(free.port, 'hello')).toBe('free: hello');
  set([taken, free]);
  await new Promise((resolve) => server.close(resolve));
  set([taken, free]);
  await eventually('it is served', () => ports.count === 2);
  expect(log).toHaveLength(1);
});

test('where no way leads to the Service, datagrams are dropped and the process lives', async () => {
  const port = await freePort();
  // Nobody may connect to it without asking for broadcasts, as where a CNI refuses what has no endpoint.
  const unreachable = { clusterIP: '255.255.255.255', servicePort: 9, service: 'shop/dns' };
  const { set } = await world({ protocol: 'UDP', port, ...unreachable });
  const echo = createSocket('udp4');
  ends.push(() => echo.close());
  echo.on('message', (data, from) => echo.send(data, from.port, from.address));
  await new Promise<void>((resolve) => echo.bind({ address: CLUSTER_IP }, resolve));
  const client = createSocket('udp4');
  ends.push(() => client.close());
  const heard: string[] = [];
  client.on('message', (data) => heard.push(data.toString()));
  for (let datagram = 0; datagram < 10; datagram++) {
    await new Promise((done) => client.send('lost', port, NODE, done));
    await new Promise((done) => setImmediate(done));
  }
  const servicePort = echo.address().port;
  set([{ protocol: 'UDP', port, clusterIP: CLUSTER_IP, servicePort, service: 'shop/dns' }]);
  await eventually('another one is answered', () => {
    client.send('found', port, NODE);
    return heard.includes('found');
  });
});

test('datagrams are passed on, and each answer goes to the client that has asked', async () => {
  const wanted = await wantedDatagrams();
  const { port } = wanted;
  await world(wanted);
  const clients = ['a', 'b'].map((name) => {
    const socket = createSocket('udp4');
    ends.push(() => socket.close());
    const heard: string[] = [];
    socket.on('message', (data) => heard.push(data.toString()));
    return { socket, heard, name };
  });
  await eventually('both are answered', () => {
    for (const { socket, name } of clients) socket.send(name, port, NODE);
    return clients.every(({ heard }) => heard.length > 0);
  });
  for (const { heard, name } of clients)
    expect(heard.every((words) => words.startsWith(`echo ${name} `))).toBe(true);
});

describe('where all places are taken', () => {
  const [FLOOD, OTHER] = ['127.0.0.10', '127.0.0.11'];

  /** One that gives back what it is told, at once. */
  async function wantedEcho(): Promise<WantedPort> {
    const server: Server = createServer((socket) => void socket.on('error', () => undefined).pipe(socket));
    ends.push(() => server.close());
    await listen(server, CLUSTER_IP, 0);
    const [port, servicePort] = [await freePort(), portOf(server) ?? 0];
    return { protocol: 'TCP', port, clusterIP: CLUSTER_IP, servicePort, service: 'shop/web' };
  }

  interface Client {
    isClosed: boolean;
    /** Whether it is answered once more. */
    isServed: () => Promise<boolean>;
  }

  async function client({ port }: WantedPort, from: string): Promise<Client> {
    const socket = await dial(port, from);
    let answers = 0;
    const one: Client = {
      isClosed: false,
      isServed: async () => {
        const before = answers;
        socket.write('.');
        await eventually('an answer, or the end', () => answers > before || one.isClosed);
        return answers > before;
      },
    };
    socket.on('error', () => undefined);
    socket.on('data', (data) => (answers += data.length));
    socket.on('close', () => (one.isClosed = true));
    return one;
  }

  async function clients(wanted: WantedPort, from: string, count: number): Promise<Client[]> {
    const made: Client[] = [];
    for (let index = 0; index < count; index++) {
      const one = await client(wanted, from);
      expect(await one.isServed()).toBe(true);
      made.push(one);
    }
    return made;
  }

  test('by one address, others come in, and it loses the connection that it has not used the longest', async () => {
    const [clock, wanted] = [new FakeClock(), await wantedEcho()];
    await worldOf([wanted], { clock, maxOpen: 4 });
    const flood = await clients(wanted, FLOOD, 4);
    await clock.advance(5_000);
    expect(await flood[0]?.isServed()).toBe(true);
    await clock.advance(5_000);
    const [other] = await clients(wanted, OTHER, 1);
    await eventually('one has ended', () => flood[1]?.isClosed === true);
    expect(flood.map(({ isClosed }) => isClosed)).toEqual([false, true, false, false]);
    for (const one of [flood[0], flood[2], flood[3], other]) expect(await one?.isServed()).toBe(true);
  });

  test('a flood of connections ends none of those that are in use, its own neither', async () => {
    const [clock, wanted] = [new FakeClock(), await wantedEcho()];
    await worldOf([wanted], { clock, maxOpen: 4 });
    const open = [...(await clients(wanted, FLOOD, 2)), ...(await clients(wanted, OTHER, 2))];
    for (const from of [FLOOD, OTHER]) {
      // A reset may come before it is told that it is connected.
      const refused = await client(wanted, from).catch(() => undefined);
      await eventually('it is refused', () => refused?.isClosed !== false);
    }
    for (const one of open) expect(await one.isServed()).toBe(true);
    await clock.advance(5_000);
    await clock.advance(10_000);
    await clients(wanted, FLOOD, 1);
    expect(open.filter(({ isClosed }) => isClosed)).toHaveLength(1);
  });

  interface Sender {
    /** Sends until it is answered, and tells the port of its flow. */
    flow: () => Promise<string>;
    send: () => void;
    heard: string[];
  }

  async function sender({ port }: WantedPort, from: string): Promise<Sender> {
    const socket = createSocket('udp4');
    ends.push(() => socket.close());
    await new Promise<void>((resolve) => socket.bind({ address: from }, resolve));
    const heard: string[] = [];
    socket.on('message', (data) => heard.push(data.toString().split(' ').at(-1) ?? ''));
    const send = (): void => socket.send('.', port, NODE);
    const flow = async (): Promise<string> => {
      heard.length = 0;
      await eventually('it is answered', () => {
        send();
        return heard.length > 0;
      });
      return heard.at(-1) ?? '';
    };
    return { flow, send, heard };
  }

  test('by datagrams of one address, those of others pass; its own more are dropped as long as those before are in use', async () => {
    const [clock, wanted] = [new FakeClock(), await wantedDatagrams()];
    await worldOf([wanted], { clock, maxOpen: 3 });
    const flood = [await sender(wanted, FLOOD), await sender(wanted, FLOOD), await sender(wanted, FLOOD)];
    const flows: string[] = [];
    for (const one of flood) flows.push(await one.flow());
    const [more, other] = [await sender(wanted, FLOOD), await sender(wanted, OTHER)];
    more.send();
    expect(await flood[0]?.flow()).toBe(flows[0]);
    await other.flow();
    // The second one was not used for the longest time.
    expect(await flood[2]?.flow()).toBe(flows[2]);
    expect(await flood[0]?.flow()).toBe(flows[0]);
    expect(more.heard).toEqual([]);
    await clock.advance(2_000);
    await more.flow();
    expect(await flood[0]?.flow()).toBe(flows[0]);
  });

  test('by connections, datagrams pass', async () => {
    const [stream, datagrams] = [await wantedEcho(), await wantedDatagrams()];
    await worldOf([stream, datagrams], { clock: new FakeClock(), maxOpen: 2 });
    await clients(stream, OTHER, 2);
    await (await sender(datagrams, OTHER)).flow();
  });
});
