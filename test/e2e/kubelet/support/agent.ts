/**
 * Runs the agent as a process in the home node's network instead of as a pod: a kubelet would wait longer and longer
 * before it restarts a container that is killed repeatedly.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { renderKubeconfig } from '../../../../lab/kubeconfig.ts';
import type { Daemon } from '../../../../lab/daemon.ts';
import { mainModule } from '../../../../lab/own-program.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { deploymentPath } from '../../../support/e2e/api.ts';
import { NODE } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';
import type { World } from './world.ts';

const SYSTEM = 'tributary-system';
const AGENT = 'tributary-peer-foreign';
const PORTS = { kubelet: 10_260, ops: 18_090 };

/** Ends the agent's pod and starts the process in its place, with the rights of its service account. */
export async function startOutside(world: World): Promise<Daemon> {
  const { home, lab } = world;
  await scale(world, 0);
  const cluster = lab.cluster('home');
  const node = cluster.node();
  const directory = join(lab.spec.dataDirectory, 'outside-agent');
  mkdirSync(directory, { recursive: true });
  const file = (name: string, content: string): string => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const serving = await cluster.pki.authority.issue({
    commonName: `system:node:${NODE}`,
    organizations: ['system:nodes'],
    ips: [node.address],
  });
  const { status } = await home.create<{ status: { token: string } }>(
    `/api/v1/namespaces/${SYSTEM}/serviceaccounts/${AGENT}/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7200 } },
  );
  const kubeconfig = JSON.parse(
    renderKubeconfig({
      name: 'home',
      server: cluster.server,
      caCert: cluster.pki.authority.cert,
      client: cluster.pki.admin,
    }),
  ) as { users: { user: unknown }[] };
  kubeconfig.users = [{ ...kubeconfig.users[0], user: { token: status.token } }];
  return node.spawn('outside-agent', [
    process.execPath,
    mainModule(),
    'run',
    'peer',
    `--virtual-node=${NODE}`,
    `--kubeconfig=${file('kubeconfig', JSON.stringify(kubeconfig))}`,
    `--node-address=${node.address}`,
    `--kubelet-port=${PORTS.kubelet}`,
    `--ops-port=${PORTS.ops}`,
    `--tls-cert-file=${file('serving.crt', serving.cert)}`,
    `--tls-private-key-file=${file('serving.key', serving.key)}`,
  ]);
}

/** Ends the process and starts the agent's pod again. */
export async function endOutside(world: World, agent: Daemon): Promise<void> {
  await agent.kill();
  await scale(world, 1);
}

async function scale({ home }: World, replicas: number): Promise<void> {
  await home.patch(deploymentPath(SYSTEM, AGENT), { spec: { replicas } });
  const selector = encodeURIComponent(`app.kubernetes.io/instance=${AGENT}`);
  await until(
    `${replicas} agents as pods`,
    async () => {
      const pods = await home.list<Pod>(`/api/v1/namespaces/${SYSTEM}/pods?labelSelector=${selector}`);
      const ready = pods.filter(({ status }) =>
        status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      );
      return pods.length === replicas && ready.length === replicas;
    },
    { seconds: 60 },
  );
}
