import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, expect, test } from '@jest/globals';

import { TributaryError } from '../../../../src/lib/errors.ts';
import type { DashboardVisitor } from '../../../../src/server/dashboard/ports.ts';
import { streamModels } from '../../../../src/server/dashboard/stream.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

let server: Server | undefined;
afterEach(() => server?.closeAllConnections());

/** More than a connection takes without a reader. */
const LARGE = 'x'.repeat(32 * 1024 * 1024);

/** A page whose reader reads nothing. */
async function stalled(review: () => Promise<void>): Promise<{
  clock: FakeClock;
  ended: AbortController;
  change: () => void;
  response: ServerResponse;
  closed: () => number;
  reader: IncomingMessage;
}> {
  const clock = new FakeClock();
  const ended = new AbortController();
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  let change = (): void => undefined;
  let count = 0;
  let closed = 0;
  const visitor: DashboardVisitor = {
    user: 'ann',
    model: () => ({ count: ++count, LARGE }),
    review,
    act: async () => Promise.resolve(''),
    onChange: (listener) => {
      change = listener;
      return () => (change = () => undefined);
    },
    close: async () => Promise.resolve(),
  };
  server = createServer((_request, response) => {
    streamModels({ clock, session: { visitor, ended: ended.signal }, response, closed: () => closed++ });
    resolve(response);
  });
  await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const reader = await new Promise<IncomingMessage>((done) => get({ port, host: '127.0.0.1' }, done));
  reader.on('error', () => undefined);
  return { clock, ended, response: await promise, change: () => change(), closed: () => closed, reader };
}

test('a page that does not read hears nothing after the end of its session, and no beat goes on', async () => {
  let reviews = 0;
  const { clock, ended, response, change, closed, reader } = await stalled(async () => {
    reviews++;
    return Promise.resolve();
  });
  const errors: unknown[] = [];
  response.on('error', (error) => errors.push(error));
  await clock.advance(10_000);
  expect(reviews).toBe(1);
  ended.abort();
  change();
  await clock.advance(60_000);
  expect(errors).toEqual([]);
  expect(reviews).toBe(2);
  expect(closed()).toBe(0);
  reader.destroy();
  await eventually('it is closed', () => closed() === 1);
  await clock.advance(60_000);
  expect(reviews).toBe(2);
});

test('a token that has ended ends the page, and nothing is written after it', async () => {
  const { clock, response, change } = await stalled(async () =>
    Promise.reject(new TributaryError('Unauthorized', 'it ended')),
  );
  const errors: unknown[] = [];
  response.on('error', (error) => errors.push(error));
  await clock.advance(10_000);
  expect(response.writableEnded).toBe(true);
  change();
  await clock.advance(60_000);
  expect(errors).toEqual([]);
});
