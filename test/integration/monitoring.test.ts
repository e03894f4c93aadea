import 'reflect-metadata';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { manifestsCommand } from '../../src/cli/manifests.ts';
import { ALERTS } from '../../src/deploy/monitoring/alerts.ts';
import { DASHBOARD_SOURCES } from '../../src/deploy/monitoring/dashboards.ts';
import { metricsOf } from '../../src/deploy/monitoring/metrics.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { LauncherLab, SYSTEM } from '../support/labs/launcher-lab.ts';
import { printed } from '../support/labs/rights-cluster.ts';
import { RoleProcess } from '../support/labs/role-process.ts';
import { longOnly } from '../support/long.ts';
import { withoutVariables } from '../support/prom-ql.ts';
import { ALERT_SERIES, promtoolTests } from './support/alert-series.ts';
import { hasPrometheus, Prometheus } from './support/prometheus.ts';

/** What people who watch over the program see and set: roles under their own accounts on a real API server. */

const AGENT = { namespace: SYSTEM, name: 'tributary-peer-milan' };
const RULES = join(import.meta.dirname, '../../deploy/prometheus/rules.yaml');
const describeWithPrometheus = hasPrometheus() ? describe : describe.skip;
const SETTINGS = `/api/v1/namespaces/${SYSTEM}/configmaps/tributary-settings`;

let lab: LauncherLab;
let roles: { cluster: RoleProcess; peer: RoleProcess };

beforeAll(async () => {
  lab = await LauncherLab.up();
  const image = ['--image', 'tributary:1'];
  await lab.cluster.apply(
    await printed(manifestsCommand, ['peer', '--virtual-node', 'milan', '--namespaces', 'shop', ...image]),
  );
  await lab.admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'VirtualNode',
    metadata: { name: 'milan' },
    spec: {
      kubeconfigSecretRef: { namespace: SYSTEM, name: 'tributary-kubeconfig-milan' },
      resources: { cpu: '4', memory: '4Gi', pods: '10' },
    },
  });
  const local = { 'node-address': '127.0.0.1' };
  const [cluster, peer] = await Promise.all([
    RoleProcess.start('cluster', lab.cluster, {
      account: { namespace: SYSTEM, name: 'tributary-cluster' },
      options: { ...local, 'agent-image': 'tributary:1', 'peering-port': '0', 'webhook-port': '0' },
    }),
    RoleProcess.start('peer', lab.cluster, {
      account: AGENT,
      options: { ...local, 'virtual-node': 'milan', 'kubelet-port': '0' },
    }),
  ]);
  roles = { cluster, peer };
});

afterAll(async () => {
  await Promise.all(Object.values(roles ?? {}).map(async (role) => role.stop()));
  await lab?.down();
});

const levels = (): string[] => Object.values(roles).map(({ sink }) => sink.level);

/** As `kubectl patch` does it; resolves when all roles have that level, with how long it took. */
async function set(logLevel: string | null, expected: string): Promise<number> {
  const began = systemClock.monotonic();
  const { api } = lab.cluster.cluster;
  const settings = { data: { logLevel } };
  const { status, body } = await api.call('PATCH', SETTINGS, settings, 'application/merge-patch+json');
  expect({ status, body }).toMatchObject({ status: 200 });
  await eventually(`all roles log at ${expected}`, () => levels().every((level) => level === expected));
  return systemClock.monotonic() - began;
}

describe('the level of logs', () => {
  test('changes for the role and for the agent when the settings do, and back', async () => {
    expect(levels()).toEqual(['info', 'info']);
    const took = [await set('debug', 'debug'), await set('warn', 'warn'), await set(null, 'info')];
    console.log(`levels changed after ${took.map((ms) => `${Math.round(ms)} ms`).join(', ')}`);
    for (const { lines } of Object.values(roles)) {
      const said = lines.filter(({ message }) => message === 'the level of logs changes');
      expect(said.map(({ from, to, by }) => ({ from, to, by }))).toEqual([
        { from: 'info', to: 'debug', by: 'settings' },
        { from: 'debug', to: 'warn', by: 'settings' },
        { from: 'warn', to: 'info', by: 'start' },
      ]);
    }
  });

  test('a level that there is not is complained of, and the level at start counts', async () => {
    await set('error', 'error');
    await set('loud', 'info');
    for (const { lines } of Object.values(roles)) {
      const said = lines.filter(({ level, logger }) => level === 'error' && logger.endsWith('.settings'));
      expect(said).toMatchObject([{ logLevel: 'loud', levels: 'debug, info, warn, error' }]);
    }
    await set(null, 'info');
  });

  test('the agent may read the settings and no other ConfigMap there, and may not write them', async () => {
    const agent = await lab.cluster.as(AGENT);
    const all = `/api/v1/namespaces/${SYSTEM}/configmaps`;
    const only = `${all}?fieldSelector=metadata.name%3Dtributary-settings`;
    expect(await agent('GET', only)).toMatchObject({ status: 200 });
    expect(await agent('GET', all)).toMatchObject({ status: 403 });
    expect(await agent('PATCH', SETTINGS, { data: { logLevel: 'debug' } })).toMatchObject({ status: 403 });
  });
});

test.each(['cluster', 'peer'] as const)(
  'the role %s shows the metrics that are listed for it',
  async (role) => {
    const listed = metricsOf(role).map(({ name, type }) => `${name} ${type}`);
    const shown = async (): Promise<string[]> => {
      const text = await (await fetch(`http://127.0.0.1:${roles[role].port}/metrics`)).text();
      return [...text.matchAll(/^# TYPE (.*)$/gmu)].map(([, line = '']) => line).toSorted();
    };
    // Some parts come only when the role leads, or when its VirtualNode is found.
    await eventually('it shows as many', async () => (await shown()).length >= listed.length);
    expect(await shown()).toEqual(listed.toSorted());
  },
);

describeWithPrometheus('with promtool', () => {
  const promtool = (...args: string[]): { status: number | null; said: string } => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
    return { status, said: `${stdout}${stderr}` };
  };

  test('the rules are rules', () => {
    const { status, said } = promtool('check', 'rules', RULES);
    expect({ status, said }).toMatchObject({ status: 0 });
    expect(said).toContain(`${ALERTS.size} rules found`);
  });

  test('each alert fires when it should, and not else', () => {
    expect(Object.keys(ALERT_SERIES)).toEqual([...ALERTS.keys()]);
    const folder = mkdtempSync(join(tmpdir(), 'tributary-promtool-'));
    try {
      const path = join(folder, 'tests.yaml');
      writeFileSync(path, JSON.stringify(promtoolTests(RULES)));
      const { status, said } = promtool('test', 'rules', path);
      expect({ status, said }).toMatchObject({ status: 0 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const describeScrapes = hasPrometheus()
  ? longOnly('a Prometheus that scrapes (unit tests ask each expression of what roles show)', describe)
  : describe.skip;
describeScrapes('a Prometheus that scrapes both roles', () => {
  let prometheus: Prometheus;

  beforeAll(async () => {
    prometheus = await Prometheus.start(
      Object.values(roles).map(({ port = 0 }) => port),
      RULES,
    );
  });

  afterAll(async () => prometheus?.stop());

  test('evaluates all rules without an error', async () => {
    const rules = await prometheus.rules();
    expect(rules.map(({ name }) => name).toSorted()).toEqual([...ALERTS.keys()].toSorted());
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    // Of what is really so: the foreign cluster of the agent is not there.
    const pending = rules.filter(({ state }) => state !== 'inactive').map(({ name }) => name);
    expect(pending).toContain('TributaryForeignClusterUnreachable');
    expect(pending).not.toContain('TributaryKubeletCertificateExpires');
  });

  test('evaluates each expression of the dashboards, and finds what the two roles show', async () => {
    const expressions = Object.values(DASHBOARD_SOURCES).flatMap(({ panels }) =>
      panels.flatMap(({ queries }) => queries.map(([expr]) => withoutVariables(expr))),
    );
    const counts = await Promise.all(
      expressions.map(async (expr) => ({ expr, count: await prometheus.count(expr) })),
    );
    expect(counts.length).toBeGreaterThan(30);
    const countOf = (part: string): number => counts.find(({ expr }) => expr.includes(part))?.count ?? -1;
    expect(countOf('count by (role, version) (tributary_build_info)')).toBe(2);
    expect(countOf('process_resident_memory_bytes * on (instance)')).toBe(2);
    expect(countOf('rate(process_cpu_seconds_total')).toBe(2);
    expect(countOf('tributary_virtual_node_foreign_reachable')).toBe(1);
    expect(countOf('sum by (phase) (tributary_virtual_node_pods')).toBe(5);
    expect(countOf('topk(10, tributary_queue_depth)')).toBe(10);
  });
});
