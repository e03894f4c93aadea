/** The program of role `cluster` on a real API server, which lends to many clusters that are no more than their links. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { compileProgram, imageFlags } from '../../lab/compiled-program.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { Lab } from '../../lab/lab.ts';
import { PeerProcess } from '../../lab/peer-process.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { present } from '../../src/lib/fields.ts';
import { ClusterApi, clusterID } from '../../test/support/e2e/api.ts';
import { awaited } from '../../test/support/eventually.ts';
import type { ManyPeersBed } from '../idle/many-peers.ts';
import type { FarClusters } from './far-clusters.ts';

const LENDER = 'lender';
const PATIENCE_MS = 60_000;

export class LinksBed implements ManyPeersBed {
  readonly #lab: Lab;
  readonly #process: PeerProcess;
  readonly #clusterID: string;

  private constructor(lab: Lab, process: PeerProcess, clusterID: string) {
    this.#lab = lab;
    this.#process = process;
    this.#clusterID = clusterID;
  }

  /** `checkout`: whose program it is. */
  static async up(name: string, checkout?: string): Promise<LinksBed> {
    const clusters = [{ name: LENDER, workload: 'kwok' as const, metricsServer: false }];
    const lab = await Lab.fresh({ name, clusters });
    try {
      const cluster = lab.cluster(LENDER);
      const main = compileProgram(join(lab.spec.dataDirectory, 'program'), present({ checkout }));
      await PeerProcess.prepare(cluster, checkout);
      const process = PeerProcess.start(cluster, {
        role: 'cluster',
        program: [...imageFlags(checkout), main],
        options: { 'log-level': 'info', 'agent-image': 'none' },
      });
      await openFor(cluster);
      return new LinksBed(lab, process, await clusterID(new ClusterApi(cluster)));
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  get pids(): ManyPeersBed['pids'] {
    return { cluster: this.#process.daemon.id?.pid ?? 0 };
  }

  async join(count: number): Promise<void> {
    const names = Array.from({ length: count }, (_, index) => `far-${index + 1}`);
    const far: FarClusters = { names, lender: this.#clusterID, endpoint: this.#process.endpoint };
    const program = join(import.meta.dirname, 'far-clusters.ts');
    const daemon = this.#lab
      .cluster(LENDER)
      .node()
      .spawn('far', [process.execPath, program, JSON.stringify(far)]);
    await awaited(
      `${count} clusters have a peering`,
      () => readFileSync(daemon.spec.logFile, 'utf8').includes('ready\n'),
      { deadlineMs: PATIENCE_MS },
    );
  }

  async down(): Promise<void> {
    await this.#lab.down();
  }
}

/** Lends to anyone. */
async function openFor(cluster: Cluster): Promise<void> {
  const spec = { peers: { anyone: true }, approval: 'Automatic' as const };
  const kind = { apiVersion: 'tributary.dev/v1alpha1', kind: 'SharingPolicy', metadata: { name: 'all' } };
  const client = createClient(await parseKubeconfig(readFileSync(cluster.kubeconfig, 'utf8')));
  try {
    await client.create(sharingPolicies, { ...kind, spec });
  } finally {
    await client.close();
  }
}
