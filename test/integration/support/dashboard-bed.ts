/** The dashboard of the role `cluster` on a real API server, with that role's own rights, and people with theirs. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { stringify } from 'yaml';

import { dashboard } from '../../../src/agent/dashboard.ts';
import { parseConfig } from '../../../src/config.ts';
import { namespaced, type ResourceType } from '../../../src/api/resources.ts';
import { CLUSTER_RIGHTS, rightsAt } from '../../../src/deploy/rights/cluster.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Component } from '../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { CountedPod } from '../../../src/api/pod-requests.ts';
import { keepPod } from '../../../src/peering/offer/stock-watcher.ts';
import { DashboardServer } from '../../../src/server/dashboard/server.ts';
import { buildPage } from '../../../tools/build-page.ts';
import { rightsAccount } from '../../support/labs/rights-account.ts';
import { RightsCluster } from '../../support/labs/rights-cluster.ts';
import { ROME, setTheScene } from './dashboard-scene.ts';

/** Debian's. */
const CHROMIUM = '/usr/bin/chromium';
export const chromiumProblem = (): string | undefined =>
  existsSync(CHROMIUM) ? undefined : 'there is no Chromium: apt-get install chromium';

const GROUPS = ['', 'tributary.dev'];
/** What people hold: everything, to see everything, and nothing. */
const PEOPLE = { admin: ['*'], viewer: ['get', 'list', 'watch'], stranger: [] } as const;
export type Person = keyof typeof PEOPLE;

const account = (name: string): { namespace: string; name: string } => ({ namespace: 'people', name });

function personObjects([name, verbs]: readonly [string, readonly string[]]): object[] {
  const rules = verbs.length === 0 ? [] : [{ apiGroups: GROUPS, resources: ['*'], verbs }];
  const rbac = 'rbac.authorization.k8s.io';
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account(name) },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: `person-${name}` }, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `person-${name}` },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: `person-${name}` },
      subjects: [{ kind: 'ServiceAccount', ...account(name) }],
    },
  ];
}

const countedPods: ResourceType<CountedPod> = namespaced('/v1', 'Pod');

export class DashboardBed {
  readonly admin: KubeClient;
  readonly url: string;
  readonly #lab: RightsCluster;
  readonly #components: readonly Component[];
  readonly #role: KubeClient;

  private constructor(
    lab: RightsCluster,
    { admin, role }: { admin: KubeClient; role: KubeClient },
    components: readonly Component[],
  ) {
    this.#lab = lab;
    this.admin = admin;
    this.#role = role;
    this.#components = components;
    const server = components.find((component) => component instanceof DashboardServer);
    this.url = `http://127.0.0.1:${server?.port}`;
  }

  static async up(): Promise<DashboardBed> {
    const [lab] = await Promise.all([RightsCluster.up(), buildPage()]);
    const people = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'people' } };
    const { admin, connect } = await rightsAccount(lab, [[rightsAt(CLUSTER_RIGHTS)]]);
    await lab.apply(
      [people, ...Object.entries(PEOPLE).flatMap(personObjects)].map((one) => stringify(one)).join('---\n'),
    );
    await setTheScene(admin);
    const role = connect();
    const log = silentLogger;
    const caches = new Caches({ client: role, clock: systemClock, log });
    const config = parseConfig({
      options: { dashboard: 'on', 'dashboard-port': '0', 'cluster-name': 'rome' },
      env: {},
      hostname: 'rome',
    });
    const live = caches.of(countedPods, { transform: keepPod });
    const components = [
      live,
      ...dashboard({
        parts: { config, clock: systemClock, log },
        caches,
        credentials: { server: new URL(lab.cluster.server), ca: lab.cluster.pki.authority.cert },
        identity: { clusterID: ROME },
        pods: live,
      }),
    ];
    for (const component of components) await component.start?.(new AbortController().signal);
    return new DashboardBed(lab, { admin, role }, components);
  }

  async tokenOf(person: Person): Promise<string> {
    return (await this.#lab.tokenOf(account(person))).token;
  }

  async down(): Promise<void> {
    for (const component of this.#components.toReversed()) await component.stop?.();
    await Promise.all([this.#role.close(), this.admin.close()]);
    await this.#lab.down();
  }
}

export interface Browser {
  context: BrowserContext;
  close: () => Promise<void>;
}

export async function startBrowser(): Promise<Browser> {
  const directory = mkdtempSync(join(tmpdir(), 'tributary-chromium-'));
  const context = await chromium.launchPersistentContext(directory, {
    executablePath: CHROMIUM,
    headless: true,
    viewport: { width: 1280, height: 900 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const close = async (): Promise<void> => {
    await context.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { context, close };
}

/** A page that is signed in, and what it has complained about. */
export interface Visit {
  page: Page;
  complaints: string[];
}

export async function visit({ context }: Browser, url: string, token: string): Promise<Visit> {
  await context.clearCookies();
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) complaints.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Clusters' }).waitFor();
  return { page, complaints };
}
