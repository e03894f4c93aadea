import { createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
import { Listeners } from '../../../../src/lib/listeners.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import type { WantedPort } from '../../../../src/server/node-ports/port.ts';
import { NodePortSources } from '../../../../src/server/node-ports/sources.ts';
import { freePorts } from '../../../../lab/free-ports.ts';
import { eventually } from '../../../support/eventually.ts';

const { signal } = new AbortController();

const isFree = async (port: number): Promise<boolean> => {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server
    .once('error', () => resolve(false))
    .listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  return promise;
};

test('a port that two virtual nodes know is listened on once, until the last of them has gone', async () => {
  const [port = 0] = await freePorts(1);
  const changed = new Listeners();
  const wanted: WantedPort = {
    protocol: 'TCP',
    port,
    service: 'shop/web',
    clusterIP: '127.0.0.1',
    servicePort: 1,
  };
  const sources = new NodePortSources({ host: '127.0.0.1', clock: systemClock, log: silentLogger });
  await sources.start();
  const parts = [1, 2].map(() => sources.partOf({ list: () => [wanted], onChange: changed.add }));
  for (const part of parts) await part.start?.(signal);
  await eventually('it is listened on', async () => !(await isFree(port)));
  await parts[0]?.stop?.();
  changed.tell();
  expect(await isFree(port)).toBe(false);
  await parts[1]?.stop?.();
  await eventually('it is free', async () => isFree(port));
  await sources.stop();
});
