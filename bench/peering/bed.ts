/** Two clusters on two networks, with Tributary as one process in each: rome is to borrow from milan. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { compileProgram, imageFlags } from '../../lab/compiled-program.ts';
import { Lab } from '../../lab/lab.ts';
import { PeerProcess, type PeerProcessOptions } from '../../lab/peer-process.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { readAnnouncementData, ANNOUNCEMENT_CONFIG_MAP } from '../../src/api/own-announcement.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { configMaps, nodes, type ResourceType } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { auditOf } from '../frame/audit.ts';
import { awaited } from '../../test/support/eventually.ts';

const VERSION = 'tributary.dev/v1alpha1';
const DEADLINE_MS = 60_000;
/** The ForeignCluster and with it the virtual node. */
export const PEER = 'milan';
type City = 'rome' | 'milan';

interface PeeringBedOptions {
  readonly checkout: string | undefined;
  readonly nodeFlags: readonly string[];
  readonly progress: (line: string) => void;
  /** How milan's process differs from that of rome. */
  readonly milan?: (lab: Lab) => Pick<PeerProcessOptions, 'role' | 'imports' | 'options'>;
  /** Both API servers tell who asks for what. Default: no. */
  readonly audit?: boolean;
}

export class PeeringBed {
  readonly clients: Readonly<Record<City, HttpClient>>;
  readonly lab: Lab;
  readonly #processes: readonly PeerProcess[];
  #milan = '';

  private constructor(lab: Lab, clients: PeeringBed['clients'], processes: readonly PeerProcess[]) {
    this.lab = lab;
    this.clients = clients;
    this.#processes = processes;
  }

  static async up(name: string, options: PeeringBedOptions): Promise<PeeringBed> {
    const { checkout, nodeFlags, progress, audit = false } = options;
    const clusters = ['rome', 'milan'].map((city, segment) => ({
      name: city,
      segment,
      workload: 'kwok' as const,
      metricsServer: false,
      ...(audit && { flags: { 'kube-apiserver': auditOf(name, city).flags } }),
    }));
    const lab = await Lab.fresh({ name, clusters, progress });
    try {
      const main = compileProgram(
        join(lab.spec.dataDirectory, 'program'),
        checkout === undefined ? {} : { checkout },
      );
      const program = [...imageFlags(checkout), ...nodeFlags, main];
      const open = async (city: City): Promise<HttpClient> =>
        createClient(await parseKubeconfig(readFileSync(lab.cluster(city).kubeconfig, 'utf8')));
      const clients = { rome: await open('rome'), milan: await open('milan') };
      await Promise.all(lab.clusters.map(async (cluster) => PeerProcess.prepare(cluster)));
      // What the role logs by default.
      const common = { program, options: { 'log-level': 'info' } };
      const processes = lab.clusters.map((cluster) =>
        PeerProcess.start(cluster, { ...common, ...(cluster.name === 'milan' && options.milan?.(lab)) }),
      );
      const bed = new PeeringBed(lab, clients, processes);
      await bed.#furnish();
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await Promise.all(Object.values(this.clients).map(async (client) => client.close()));
    // Not killed: a profile is written at the end.
    await Promise.all(this.#processes.map(async ({ daemon }) => daemon.terminate(10_000)));
    await this.lab.down();
  }

  get pids(): readonly number[] {
    return this.#processes.map(({ daemon }) => daemon.id?.pid ?? 0);
  }

  /** What `tributary peer ENDPOINT --id ID --name milan` writes. */
  async ask(): Promise<void> {
    await this.clients.rome.create(foreignClusters, {
      metadata: { name: PEER },
      spec: { clusterID: this.#milan, endpoint: this.#endpoint, outgoing: 'Enabled', incoming: 'Disabled' },
    });
  }

  /**
   * Ends the peering, and waits until nothing is left but what milan knows of rome. After some seconds milan dials rome, which then knows it,
   * too; so the next peering is to follow at once.
   */
  async end(): Promise<void> {
    await this.clients.rome.delete(foreignClusters, { name: PEER });
    await this.#until('the peering is over', async () => {
      const { items } = await this.clients.rome.list(foreignClusters);
      return items.every(({ metadata }) => metadata.name !== PEER);
    });
    await this.#gone('rome', virtualNodes);
    await this.#gone('milan', peeringRequests);
    await this.#until('rome has no virtual node', async () => {
      const { items } = await this.clients.rome.list(nodes);
      return items.every(({ metadata }) => metadata.name !== PEER);
    });
  }

  /** Of milan. */
  get #endpoint(): string {
    const [, milan] = this.#processes;
    return milan?.endpoint ?? '';
  }

  async #furnish(): Promise<void> {
    const spec = { peers: { anyone: true }, approval: 'Automatic' as const };
    const kind = { apiVersion: VERSION, kind: 'SharingPolicy', metadata: { name: 'all' } };
    await this.clients.milan.create(sharingPolicies, { ...kind, spec });
    for (const city of ['rome', 'milan'] as const) {
      await this.#until(`${city} has told who it is`, async () => {
        const { items } = await this.clients[city].list(configMaps, { namespace: 'tributary-system' });
        const own = items.find(({ metadata }) => metadata.name === ANNOUNCEMENT_CONFIG_MAP);
        const id = readAnnouncementData(own?.data)?.clusterID;
        if (city === 'milan' && id !== undefined) this.#milan = id;
        return id !== undefined;
      });
    }
  }

  async #gone<T extends KubeObject>(city: City, type: ResourceType<T>): Promise<void> {
    await this.#until(
      `${city} has no ${type.plural}`,
      async () => (await this.clients[city].list(type)).items.length === 0,
    );
  }

  async #until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const look = async (): Promise<boolean> => isSo();
    await awaited(what, look, { deadlineMs: DEADLINE_MS, rest: { least: 20, most: 250 } });
  }
}
