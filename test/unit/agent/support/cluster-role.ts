/** The whole role `cluster`, as its process runs it, against an API server in memory. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../../../../src/agent/cluster.ts';
import type { Agent } from '../../../../src/agent/parts.ts';
import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '../../../../src/api/admission.ts';
import { advertisements } from '../../../../src/api/advertisement.ts';
import { clusterModes } from '../../../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import type { ResourceType } from '../../../../src/api/resources.ts';
import { searchDomains } from '../../../../src/api/search-domain.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { parseConfig } from '../../../../src/config.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApiServer } from '../../../support/fake-api/fake-api-server.ts';

const TYPES = [
  acceptancePolicies,
  advertisements,
  clusterModes,
  foreignClusters,
  mutatingWebhookConfigurations,
  namespaceOffloadings,
  peeringRequests,
  searchDomains,
  sharingPolicies,
  tunnels,
  validatingWebhookConfigurations,
  virtualNodes,
] as ResourceType<KubeObject>[];

export class ClusterRole {
  readonly api: FakeApiServer;
  readonly #clock: Clock;
  readonly #folder = mkdtempSync(join(tmpdir(), 'tributary-cluster-'));
  #agent: Agent | undefined;

  private constructor(api: FakeApiServer, clock: Clock) {
    this.api = api;
    this.#clock = clock;
  }

  /** The API server alone, to be filled before `start`. */
  static async create(clock: Clock): Promise<ClusterRole> {
    return new ClusterRole(await new FakeApiServer({ clock, types: TYPES }).start(), clock);
  }

  /** Returns when all of it has started. */
  async start(): Promise<void> {
    const kubeconfig = join(this.#folder, 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(this.api)));
    const config = parseConfig({
      options: {
        kubeconfig,
        'agent-image': 'none',
        'node-address': '127.0.0.1',
        'ops-port': '0',
        'peering-port': '0',
        'webhook-port': '0',
        'service-cidr': '10.96.0.0/16',
      },
      env: {},
      hostname: 'test',
    });
    const parts = { config, clock: this.#clock, log: silentLogger };
    this.#agent = await startCluster(parts, new AbortController().signal);
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
    await this.api.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** What was watched since the start: path and selectors, once for each watch that was opened. */
  watched(): string[] {
    return this.api.log.flatMap((line) => {
      const { pathname, searchParams } = new URL(line.replace('GET ', ''), 'https://fake');
      if (searchParams.get('watch') !== 'true') return [];
      const selectors = ['labelSelector', 'fieldSelector'].flatMap((name) => searchParams.get(name) ?? []);
      return [[pathname, ...selectors].join(' ')];
    });
  }
}

const kubeconfigOf = (api: FakeApiServer): object => {
  const { server, ca = '' } = api.credentials();
  const cluster = { server: server.href, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: [{ name: 'x', cluster }],
    users: [{ name: 'x', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
  };
};
