/**
 * The `gateway` role as a program, on an API server in memory: for tests in network namespaces. The first argument is
 * `{"data": <ConfigMap data>, "options": <long options>}`; a line of JSON on standard output for each change of a
 * ForeignCluster. A line on standard input is new data of the ConfigMap, `null` deletes it. SIGTERM ends it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import { startGateway } from '../../../src/agent/gateway.ts';
import type { ForeignCluster, Sighting } from '../../../src/api/foreign-cluster.ts';
import { foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { ANNOUNCEMENT_CONFIG_MAP } from '../../../src/api/own-announcement.ts';
import { configMaps } from '../../../src/api/resources.ts';
import { parseConfig } from '../../../src/config.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { FakeApiServer } from '../fake-api/fake-api-server.ts';

export interface LanGatewayOptions {
  data?: Record<string, string>;
  options?: Record<string, string>;
}

export type LanGatewayLine =
  | { event: 'started' | 'stopped'; at: number }
  | { event: 'foreigncluster'; at: number; name: string; sighting?: Sighting }
  | { event: 'deleted'; at: number; name: string };

const { data, options = {} } = JSON.parse(process.argv[2] ?? '{}') as LanGatewayOptions;
const print = (line: LanGatewayLine): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
const log = createLogger({
  level: 'info',
  now: () => clock.now(),
  write: (line) => process.stderr.write(line),
});
const directory = mkdtempSync(join(tmpdir(), 'lan-gateway-'));
const server = await new FakeApiServer({ types: [foreignClusters] }).start();
const { server: url, ca = '' } = server.credentials();
const kubeconfig = join(directory, 'kubeconfig');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: String(url),
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'any' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }),
);
const client = createClient(server.credentials(), { clock });
const metadata = { namespace: 'tributary-system', name: ANNOUNCEMENT_CONFIG_MAP };
let isSaid = false;
const say = async (said: Record<string, string> | null): Promise<void> => {
  if (said === null) await client.delete(configMaps, metadata);
  else if (isSaid) await client.patch(configMaps, metadata, { type: 'merge', body: { data: said } });
  else await client.create(configMaps, { metadata, data: said });
  isSaid = said !== null;
};
if (data !== undefined) await say(data);
const informer = new Informer<ForeignCluster>({ client, type: foreignClusters, list: {}, clock, log });
informer.onChange((name, current) => {
  const at = clock.now();
  const sighting = current?.status?.sightings?.LAN;
  if (current === undefined) print({ event: 'deleted', at, name });
  else print({ event: 'foreigncluster', at, name, ...(sighting && { sighting }) });
});
const signal = new AbortController();
await informer.start(signal.signal);
const config = parseConfig({
  options: { ...options, kubeconfig, 'ops-port': '0', network: 'off' },
  env: {},
  hostname: 'gateway',
});
const agent = await startGateway({ config, clock, log }, signal.signal);
// It has been read, and some tests end this program by SIGKILL.
rmSync(directory, { recursive: true });
print({ event: 'started', at: clock.now() });

const input = createInterface({ input: process.stdin });
input.on('line', (line) => void say(JSON.parse(line) as Record<string, string> | null));
process.once('SIGTERM', () => {
  input.close();
  void stop();
});

async function stop(): Promise<void> {
  await agent.stop();
  await informer.stop();
  await client.close();
  await server.stop();
  print({ event: 'stopped', at: clock.now() });
}
