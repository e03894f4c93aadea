import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { mainModule } from '../../lab/own-program.ts';
import type { Command } from '../../src/cli/command.ts';
import { installCommand, upgradeCommand } from '../../src/cli/install/install.ts';
import { statusCommand } from '../../src/cli/look/status.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** An upgrade that is killed half-way, on a real API server, with its Pod Security and its controllers; nodes pretend to run pods. */

let lab: RightsCluster;
beforeAll(async () => {
  lab = await RightsCluster.up();
});
afterAll(async () => lab?.down());

async function run(command: Command, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await command.run(args, {
    io: { out: (text) => void (out += text), err: (text) => void (err += text) },
    signal: new AbortController().signal,
    clock: systemClock,
    open: async (): Promise<HttpClient> =>
      createClient(await parseKubeconfig(readFileSync(lab.cluster.kubeconfig, 'utf8'))),
  });
  return { code, out, err };
}

const SYSTEM_PODS = '/api/v1/namespaces/tributary-system/pods';
const level = async (): Promise<string | undefined> => {
  const object = await lab.cluster.api.get<{ metadata: { labels: Record<string, string> } }>(
    '/api/v1/namespaces/tributary-system',
  );
  return object?.metadata.labels['pod-security.kubernetes.io/enforce'];
};
interface OwnPod {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  spec: { hostNetwork?: boolean };
}
const hostPods = async (): Promise<OwnPod[]> => {
  const list = await lab.cluster.api.get<{ items: OwnPod[] }>(SYSTEM_PODS);
  return (list?.items ?? []).filter(
    ({ metadata, spec }) => spec.hostNetwork === true && metadata.deletionTimestamp === undefined,
  );
};

/** Kills the program by itself as soon as it has said this, before it does anything else: a signal from here comes late on a busy machine. */
async function killedAfter(words: string, ...args: string[]): Promise<void> {
  const kills = `const { stdout } = process, write = stdout.write.bind(stdout);
    stdout.write = (text, ...more) => {
      const isWritten = write(text, ...more);
      if (String(text).includes(${JSON.stringify(words)})) process.kill(process.pid, 'SIGKILL');
      return isWritten;
    };`;
  const program = spawn(
    process.execPath,
    [
      '--import',
      `data:text/javascript,${encodeURIComponent(kills)}`,
      mainModule(),
      '--kubeconfig',
      lab.cluster.kubeconfig,
      'upgrade',
      '--yes',
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let said = '';
  program.stdout.setEncoding('utf8').on('data', (text: string) => void (said += text));
  const [, signal] = (await once(program, 'exit')) as [number | null, string | null];
  expect({ signal, said }).toMatchObject({ signal: 'SIGKILL' });
}

test('killed half-way, its pod still comes again, and it can be repeated', async () => {
  const install = ['rome', '--image', 'tributary:1', '--one-process', 'true', '--yes'];
  expect(await run(installCommand, ...install)).toMatchObject({ code: 0, err: '' });
  expect(await level()).toBe('privileged');
  await killedAfter('rights, fences and Services', '--one-process', 'false');
  expect(await level()).toBe('privileged');
  for (const { metadata } of await hostPods()) {
    await lab.cluster.api.call('DELETE', `${SYSTEM_PODS}/${metadata.name}?gracePeriodSeconds=0`);
    await awaited('the pod comes again', async () =>
      (await hostPods()).some((one) => one.metadata.uid !== metadata.uid),
    );
  }
  const status = await run(statusCommand);
  expect(status.code).toBe(1);
  expect(status.out).toContain('was not finished');
  expect(status.out).toMatch(/gateway +missing +tributary-network/);
  const { code, err, out } = await run(upgradeCommand, '--yes');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain('was not finished: going on with its values');
  expect([await level(), await hostPods()]).toEqual(['restricted', []]);
  expect((await run(statusCommand)).out).not.toContain('was not finished');
  const record = '/api/v1/namespaces/tributary-system/configmaps/tributary-installation';
  const { data = {} } = (await lab.cluster.api.get<{ data?: Record<string, string> }>(record)) ?? {};
  expect(Object.keys(data).toSorted()).toEqual(['changeState', 'values', 'version']);
  expect(data['changeState']).toBe('Finished');
});
