import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';

import type { Agent } from '../../src/agent/parts.ts';
import { startPeer } from '../../src/agent/peer.ts';
import { openTokenIssuer, tenantKubeconfigCommand } from '../../src/cli/tenant-kubeconfig.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { parseConfig } from '../../src/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger, type LogSink } from '../../src/lib/log.ts';
import { eventually } from '../support/eventually.ts';
import { account, AGENTS, LauncherLab, RBAC, SYSTEM, wanted } from '../support/labs/launcher-lab.ts';
import { SharedAgent } from './support/shared-agent.ts';
import { type Caller, printed } from '../support/labs/rights-cluster.ts';

/** Agents started under the rights of the `cluster` role on a real API server, and what they may then do. */

const A = 'a'.repeat(26);
const B = 'b'.repeat(26);
const { signal } = new AbortController();

let lab: LauncherLab;

interface Shown {
  status?: { phase?: string; conditions?: { type: string; status: string }[] };
}

const podSpec = (nodeName: string): object => ({
  nodeName,
  tolerations: [{ operator: 'Exists' }],
  automountServiceAccountToken: false,
  containers: [{ name: 'main', image: 'example/none:1' }],
});

beforeAll(async () => {
  lab = await LauncherLab.up();
});

afterAll(async () => lab?.down());

describe('agents of two foreign clusters', () => {
  let agentA: Caller;

  beforeAll(async () => {
    await lab.launcher.ensure(wanted(A, ['milan', 'milan-2'], ['shop']), signal);
    // One that is not there does not keep it from the other.
    await lab.launcher.ensure(wanted(B, ['paris'], ['gone', 'web']), signal);
    agentA = await lab.cluster.as(account(A));
    await eventually('its rights hold', async () => (await makeNode('milan', true)).status === 201);
  });

  /** Writes an object or its status, and tries again if a controller was faster. */
  const replaced = async (path: string): Promise<number> => {
    for (;;) {
      const { body } = await lab.admin('GET', path.replace(/\/status$/, ''));
      const { status } = await agentA('PUT', path, JSON.parse(body) as object);
      if (status !== 409) return status;
    }
  };

  const makeNode = async (name: string, dry = false): Promise<{ status: number; body: string }> =>
    agentA('POST', `/api/v1/nodes${dry ? '?dryRun=All' : ''}`, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
    });

  test('each is one Deployment under an account of its own, and applying it again changes nothing', async () => {
    const path = `/apis/apps/v1/namespaces/${AGENTS}/deployments/tributary-peer-${A}`;
    const before = JSON.parse((await lab.admin('GET', path)).body) as {
      metadata: { resourceVersion: string; generation: number };
      spec: { template: { spec: { serviceAccountName: string; containers: { args: string[] }[] } } };
    };
    const { serviceAccountName, containers } = before.spec.template.spec;
    expect(serviceAccountName).toBe(`tributary-peer-${A}`);
    expect(containers[0]?.args).toEqual([
      'run',
      'peer',
      '--system-namespace',
      SYSTEM,
      '--virtual-node',
      'vn-milan,vn-milan-2',
    ]);
    await lab.launcher.ensure(wanted(A, ['milan-2', 'milan'], ['shop', 'shop']), signal);
    const after = JSON.parse((await lab.admin('GET', path)).body) as typeof before;
    expect(after.metadata.generation).toBe(before.metadata.generation);
  });

  test('one makes its own Nodes, not those of the other, nor any else', async () => {
    expect(await makeNode('milan')).toMatchObject({ status: 201 });
    expect(await makeNode('milan-2', true)).toMatchObject({ status: 201 });
    for (const name of ['paris', 'vn-milan', 'control-plane']) {
      const refused = await makeNode(name);
      expect(refused).toMatchObject({ status: 422 });
      expect(refused.body).toContain('the Nodes that it serves');
    }
  });

  test('one writes no Node, Lease, VirtualNode or pod of the other', async () => {
    await lab.admin('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'paris' } });
    expect(await replaced('/api/v1/nodes/paris')).toBe(422);
    expect(await replaced('/api/v1/nodes/paris/status')).toBe(422);
    expect(await agentA('DELETE', '/api/v1/nodes/paris')).toMatchObject({ status: 422 });
    const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const lease = (name: string): object => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name },
    });
    expect(await agentA('POST', LEASES, lease('paris'))).toMatchObject({ status: 422 });
    expect(await agentA('POST', LEASES, lease('tributary-agent.paris'))).toMatchObject({ status: 422 });
    expect(await agentA('POST', LEASES, lease('tributary-agent.milan'))).toMatchObject({ status: 201 });
    expect(await agentA('POST', LEASES, lease('milan'))).toMatchObject({ status: 201 });
    for (const [name, status] of [
      ['paris', 422],
      ['milan', 200],
    ] as const) {
      const path = `/apis/tributary.dev/v1alpha1/virtualnodes/vn-${name}`;
      const virtualNode = {
        apiVersion: 'tributary.dev/v1alpha1',
        kind: 'VirtualNode',
        metadata: { name: `vn-${name}` },
        spec: {
          nodeName: name,
          kubeconfigSecretRef: { namespace: SYSTEM, name: 'x' },
          resources: { cpu: '1', memory: '1Gi', pods: '1' },
        },
      };
      const made = await lab.admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', virtualNode);
      expect(made).toMatchObject({ status: 201 });
      expect(await replaced(`${path}/status`)).toBe(status);
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { nodeName: name, containers: [{ name: 'main', image: 'example/none:1' }] },
      };
      expect(await lab.admin('POST', '/api/v1/namespaces/default/pods', pod)).toMatchObject({ status: 201 });
      const there = `/api/v1/namespaces/default/pods/${name}`;
      expect(await replaced(`${there}/status`)).toBe(status);
      expect(await agentA('DELETE', `${there}?gracePeriodSeconds=0`)).toMatchObject({ status });
    }
  });

  test('one reads Secrets of its own namespaces and its own kubeconfig only', async () => {
    expect(await agentA('GET', '/api/v1/namespaces/shop/secrets/password')).toMatchObject({ status: 200 });
    const none = [
      '/api/v1/namespaces/web/secrets/password',
      '/api/v1/secrets',
      `/api/v1/namespaces/${SYSTEM}/secrets`,
      `/api/v1/namespaces/${SYSTEM}/secrets/tributary-identity`,
      `/api/v1/namespaces/${SYSTEM}/secrets/tributary-kubeconfig-${B}`,
    ];
    for (const path of none) expect(await agentA('GET', path)).toMatchObject({ status: 403 });
    const own = `/api/v1/namespaces/${SYSTEM}/secrets/tributary-kubeconfig-${A}`;
    expect(await agentA('GET', own)).toMatchObject({ status: 404 });
  });

  test('a namespace that is taken out is closed to it, one that is added is open', async () => {
    await lab.launcher.ensure(wanted(A, ['milan', 'milan-2'], ['web']), signal);
    const may = async (namespace: string): Promise<number> =>
      (await agentA('GET', `/api/v1/namespaces/${namespace}/secrets/password`)).status;
    await eventually('shop is closed', async () => (await may('shop')) === 403);
    await eventually('web is open', async () => (await may('web')) === 200);
    const agentB = await lab.cluster.as(account(B));
    expect(await agentB('GET', '/api/v1/namespaces/web/secrets/password')).toMatchObject({ status: 200 });
  });

  test('one that is removed leaves nothing, its token is worth nothing, and the other stays', async () => {
    await lab.launcher.remove(A, signal);
    const selector = `labelSelector=tributary.dev/provider%3D${A}`;
    for (const path of [
      `/apis/apps/v1/deployments?${selector}`,
      `/api/v1/pods?${selector}`,
      `/api/v1/serviceaccounts?${selector}`,
      `${RBAC}/roles?${selector}`,
      `${RBAC}/rolebindings?${selector}`,
    ]) {
      const { items } = JSON.parse((await lab.admin('GET', path)).body) as { items: object[] };
      expect({ path, items }).toEqual({ path, items: [] });
    }
    await eventually(
      'its token is worth nothing',
      async () => (await agentA('GET', '/api/v1/nodes/milan')).status === 401,
    );
    expect(
      await lab.admin('GET', `/apis/apps/v1/namespaces/${AGENTS}/deployments/tributary-peer-${B}`),
    ).toMatchObject({
      status: 200,
    });
    await lab.launcher.remove(A, signal);
  });
});

describe('an agent under the account that was made for it', () => {
  const C = 'c'.repeat(26);
  const lines: { level: string; message: string; error?: string }[] = [];
  const sink: LogSink = {
    level: 'debug',
    now: () => 0,
    write: (line) => lines.push(JSON.parse(line) as (typeof lines)[number]),
  };
  let agent: Agent;
  let folder: string;

  beforeAll(async () => {
    await lab.cluster.apply(await printed(tenantCommand, ['--peer', 'rome', '--namespace', 'rome-shop']));
    const { kubeconfig, server, pki } = lab.cluster.cluster;
    const args = ['--peer', 'rome', '--namespace', 'rome-shop', '--kubeconfig', kubeconfig];
    const foreign = await printed(tenantKubeconfigCommand(openTokenIssuer), args);
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const secret = wanted(C, [], []).kubeconfigSecret;
    await lab.admin('POST', `/api/v1/namespaces/${SYSTEM}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret.name },
      data: { kubeconfig: base64(foreign) },
    });
    const made = await lab.admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'VirtualNode',
      metadata: { name: 'vn-rome', labels: { 'tributary.dev/provider': C } },
      spec: {
        nodeName: 'rome',
        kubeconfigSecretRef: secret,
        resources: { cpu: '4', memory: '4Gi', pods: '10' },
        namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'rome-shop' }],
      },
    });
    expect(made).toMatchObject({ status: 201 });
    await lab.launcher.ensure(wanted(C, ['rome'], ['shop']), signal);
    folder = mkdtempSync(join(tmpdir(), 'tributary-launcher-'));
    const { token } = await lab.cluster.tokenOf(account(C));
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'x',
      clusters: [
        { name: 'x', cluster: { server, 'certificate-authority-data': base64(pki.authority.cert) } },
      ],
      users: [{ name: 'x', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    };
    writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(config), { mode: 0o600 });
    const options = {
      kubeconfig: join(folder, 'kubeconfig'),
      'virtual-node': 'vn-rome',
      'node-address': '127.0.0.1',
      'kubelet-port': '0',
      'ops-port': '0',
    };
    agent = await startPeer(
      {
        config: parseConfig({ options, env: {}, hostname: 'test' }),
        clock: systemClock,
        log: createLogger(sink),
        sink,
      },
      signal,
    );
  });

  afterAll(async () => {
    await agent?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  const ready = async (): Promise<boolean> =>
    (await lab.shown<Shown>('/api/v1/nodes/rome'))?.status?.conditions?.some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    ) === true;
  const POD = '/api/v1/namespaces/shop/pods/hello';

  test('it follows the level of logs that is set in tributary-system', async () => {
    const { api } = lab.cluster.cluster;
    for (const logLevel of ['info', null]) {
      const path = `/api/v1/namespaces/${SYSTEM}/configmaps/tributary-settings`;
      const settings = { data: { logLevel } };
      const answer = await api.call('PATCH', path, settings, 'application/merge-patch+json');
      expect(answer).toMatchObject({ status: 200 });
      await eventually(`it logs at ${logLevel}`, () => sink.level === (logLevel ?? 'debug'));
    }
  });

  test('has all the rights that it needs: Node, pod, its end, and its own', async () => {
    await eventually('the Node is Ready', ready);
    await eventually(
      'shop has its account',
      async () => (await lab.shown('/api/v1/namespaces/shop/serviceaccounts/default')) !== undefined,
    );
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'hello' },
      spec: podSpec('rome'),
    };
    expect(await lab.admin('POST', '/api/v1/namespaces/shop/pods', pod)).toMatchObject({ status: 201 });
    const remote = '/api/v1/namespaces/rome-shop/pods/hello';
    await eventually('it runs over there', async () => (await lab.shown(remote)) !== undefined);
    await eventually(
      'home shows that it runs',
      async () => (await lab.shown<Shown>(POD))?.status?.phase === 'Running',
    );
    await lab.admin('DELETE', POD);
    await eventually(
      'it is gone on both sides',
      async () => !(await lab.shown(POD)) && !(await lab.shown(remote)),
    );
    await lab.admin('DELETE', '/apis/tributary.dev/v1alpha1/virtualnodes/vn-rome');
    await eventually('so is the Node', async () => (await lab.shown('/api/v1/nodes/rome')) === undefined);
    // Matched as a whole word, because the number of a port may contain one of these.
    const refused = lines.filter((line) => /\b(forbidden|denied|403|422)\b/i.test(JSON.stringify(line)));
    expect(refused).toEqual([]);
  });
});

describe('one agent of all, with a provider whose API server never ends an answer', () => {
  const [WELL, ILL] = ['d'.repeat(26), 'e'.repeat(26)];
  let agent: SharedAgent;

  beforeAll(async () => {
    agent = await SharedAgent.start(lab, { well: WELL, ill: ILL });
  });
  afterAll(async () => agent?.stop());

  const ready = async (node: string): Promise<string | undefined> =>
    (await lab.shown<Shown>(`/api/v1/nodes/${node}`))?.status?.conditions?.find(
      ({ type }) => type === 'Ready',
    )?.status;

  test('serves the others, and those only that are labelled for it, within its rights', async () => {
    await eventually(
      'the Node of the one that is well is Ready',
      async () => (await ready('oslo')) === 'True',
    );
    await eventually('the other one has a Node', async () => (await ready('ghost')) === 'False');
    const body = { metadata: { name: 'away' }, spec: podSpec('oslo') };
    await lab.admin('POST', '/api/v1/namespaces/shop/pods', body);
    await eventually(
      'its pod runs',
      async () => (await lab.shown<Shown>('/api/v1/namespaces/shop/pods/away'))?.status?.phase === 'Running',
    );
    await lab.admin('DELETE', '/api/v1/namespaces/shop/pods/away');
    await agent.label('oslo', null);
    await eventually('it lets go', async () => (await ready('oslo')) === 'False');
    await agent.label('oslo', 'peers');
    await eventually('it serves again', async () => (await ready('oslo')) === 'True');
    await lab.admin('DELETE', '/apis/tributary.dev/v1alpha1/virtualnodes/vn-ghost');
    await eventually('the other Node is gone', async () => (await ready('ghost')) === undefined);
    expect(await ready('oslo')).toBe('True');
    const refused = agent.process.lines.filter((line) =>
      /\b(forbidden|denied|403|422)\b/i.test(JSON.stringify(line)),
    );
    expect(refused).toEqual([]);
  });
});
