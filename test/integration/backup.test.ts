import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { binaries } from '../../lab/binaries.ts';
import { namespaces, secrets } from '../../src/api/resources.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { hasCode } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { loadIdentity } from '../../src/peering/identity/store.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** docs/operations/backup.md, its commands to the letter, on a real API server. */

const namespace = 'tributary-system';
const [backUp = '', restore = ''] = [
  ...readFileSync(new URL('../../docs/operations/backup.md', import.meta.url), 'utf8').matchAll(
    /^```sh\n(.*?)^```$/gmsu,
  ),
].map(([, block = '']) => block);

let lab: RightsCluster;
let admin: KubeClient;
let folder: string;

beforeAll(async () => {
  lab = await RightsCluster.up();
  admin = await lab.admin();
  folder = mkdtempSync(join(tmpdir(), 'tributary-backup-'));
});

afterAll(async () => {
  await admin?.close();
  await lab?.down();
  rmSync(folder, { recursive: true, force: true });
});

async function shell(script: string): Promise<void> {
  const { kubectl } = await binaries(undefined, ['kubectl']);
  const env = {
    KUBECONFIG: lab.cluster.kubeconfig,
    PATH: [dirname(kubectl), process.env['PATH']].join(delimiter),
  };
  const { status, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${script}\n${stderr}`);
}

const started = async (): Promise<string> =>
  (await loadIdentity({ client: admin, namespace, log: silentLogger }, new AbortController().signal))
    .clusterID;

const isGone = async (): Promise<boolean> =>
  admin.get(namespaces, { name: namespace }).then(
    () => false,
    (error: unknown) => hasCode(error, 'NotFound'),
  );

test('everything is deleted, the key is restored, and the cluster is the same', async () => {
  await admin.create(namespaces, { metadata: { name: namespace } });
  const clusterID = await started();
  await shell(backUp);
  const file = join(folder, 'tributary-identity.yaml');
  // Only its owner may read a private key.
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await admin.delete(namespaces, { name: namespace });
  await eventually('everything is gone', isGone, 60_000);
  await shell(restore);
  expect(await started()).toBe(clusterID);
  // Without the key it would have been another cluster.
  await admin.delete(namespaces, { name: namespace });
  await eventually('everything is gone again', isGone, 60_000);
  await admin.create(namespaces, { metadata: { name: namespace } });
  expect(await started()).not.toBe(clusterID);
  expect(await admin.get(secrets, { name: 'tributary-identity', namespace })).toBeDefined();
});
