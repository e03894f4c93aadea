/**
 * A home namespace, a virtual node, its agent, and a tenant of their own: what happens in one lane does not touch another one.
 * The agent has the rights that the product's own manifests give it, and reaches both API servers through proxies.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { freePorts } from '../../lab/free-ports.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { kubeconfigWith, tokenOf } from '../access.ts';
import { AuditorProcess } from '../auditor-process.ts';
import { Program } from '../program.ts';
import { type FaultProxy, proxyOf } from '../proxy/proxy.ts';
import { until } from '../until.ts';
import type { PodsBed } from './bed.ts';

/** Whose API server a fault is before. */
export type Side = 'home' | 'provider';
export const SIDES: readonly Side[] = ['home', 'provider'];

export function sideOf(name: string): Side {
  const found = SIDES.find((side) => side === name);
  if (found === undefined) throw new Error(`there is no side ${name}: ${SIDES.join(', ')}`);
  return found;
}

const SYSTEM = 'tributary-system';
const QUOTA = 'cpu=100,memory=100Gi,pods=60';

export class Lane {
  readonly namespace: string;
  readonly tenant: string;
  readonly node: string;
  /** What is in the Secret of the workload, and in the kubeconfigs: nobody may print it. */
  readonly canary: string;
  readonly bed: PodsBed;
  readonly proxies: Readonly<Record<Side, FaultProxy>>;
  readonly agent: Program;
  readonly auditor: AuditorProcess;

  private constructor(parts: {
    bed: PodsBed;
    names: LaneNames;
    proxies: Readonly<Record<Side, FaultProxy>>;
    agent: Program;
    auditor: AuditorProcess;
  }) {
    const { bed, names, proxies, agent, auditor } = parts;
    this.namespace = names.namespace;
    this.tenant = names.tenant;
    this.node = names.node;
    this.canary = names.canary;
    this.bed = bed;
    this.proxies = proxies;
    this.agent = agent;
    this.auditor = auditor;
  }

  static async up(bed: PodsBed, index: number): Promise<Lane> {
    const names = namesOf(index);
    const folder = join(bed.lab.spec.dataDirectory, names.node);
    mkdirSync(folder, { recursive: true });
    const proxies = { home: await proxyOf(bed.home), provider: await proxyOf(bed.provider) };
    await furnish(bed, names, proxies.provider);
    const token = await tokenOf(bed.home, { namespace: SYSTEM, name: `tributary-peer-${names.node}` });
    const kubeconfig = join(folder, 'home.kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigWith(bed.home, proxies.home.url, token)), {
      mode: 0o600,
    });
    const agent = new Program({
      main: bed.main,
      args: await argumentsOf(bed.home, { kubeconfig, node: names.node, folder }),
      env: { POD_NAME: `tributary-peer-${names.node}` },
      logFile: join(bed.lab.spec.dataDirectory, 'log', `${names.node}.log`),
      lab: bed.lab.spec,
    });
    const others = Array.from({ length: bed.laneCount }, (_, i) => namesOf(i)).filter(
      ({ node }) => node !== names.node,
    );
    const auditor = AuditorProcess.start(
      {
        home: { kubeconfig: bed.home.kubeconfig },
        providers: [
          {
            name: 'provider',
            kubeconfig: bed.provider.kubeconfig,
            node: names.node,
            namespaces: [{ home: names.namespace, tenant: names.tenant }],
          },
        ],
        canaries: [names.canary, token],
        logs: [agent.logFile],
        hosts: [],
        bounds: bed.bounds,
        ignoreNamespaces: others.flatMap(({ namespace, tenant }) => [namespace, tenant]),
        ignoreNodes: others.map(({ node }) => node),
      },
      join(folder, 'audit.json'),
      bed.lab.spec,
    );
    return new Lane({ bed, names, proxies, agent, auditor });
  }

  async down(): Promise<void> {
    await this.auditor.stop();
    this.agent.kill();
    await this.agent.gone();
    for (const side of SIDES) await this.proxies[side].stop();
  }

  async start(): Promise<void> {
    await this.auditor.watchProcess(this.agent.start());
  }

  /** kill -9, announced to the auditor; does not wait. */
  kill(): void {
    const pid = this.agent.kill();
    // An auditor that does not hear it fails at the next command.
    if (pid !== undefined) this.auditor.killed(pid).catch(() => undefined);
  }

  /** The process has gone, if it was killed. */
  async restarted(): Promise<void> {
    this.kill();
    await this.agent.gone();
    await this.start();
  }

  calm(): void {
    for (const side of SIDES) this.proxies[side].calm();
  }

  async ready(): Promise<void> {
    await until(`node ${this.node} is Ready`, async () => {
      const node = await this.bed.home.api.get<NodeState>(`/api/v1/nodes/${this.node}`);
      const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
      const tainted = node?.spec?.taints?.filter(({ key }) => key.startsWith('node.kubernetes.io/')) ?? [];
      if (ready?.status === 'True' && tainted.length === 0) return true;
      return `${JSON.stringify(ready)} ${JSON.stringify(tainted)}; the end of its log:\n${this.agent.tail(1_500)}`;
    });
  }
}

interface NodeState {
  spec?: { taints?: { key: string }[] };
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}

interface LaneNames {
  readonly namespace: string;
  readonly tenant: string;
  readonly node: string;
  readonly peer: string;
  readonly canary: string;
}

const namesOf = (index: number): LaneNames => ({
  namespace: `shop-${index}`,
  tenant: `tenant-${index}`,
  node: `v-${index}`,
  peer: `rome-${index}`,
  canary: `canary-of-lane-${index}-which-nobody-prints`,
});

async function furnish(bed: PodsBed, names: LaneNames, proxy: FaultProxy): Promise<void> {
  const { namespace, tenant, node, peer } = names;
  const where = ['--peer', peer, '--namespace', tenant];
  await bed.apply(bed.provider, bed.tributary('tenant', ...where, '--quota', QUOTA));
  const direct = bed.tributary('tenant-kubeconfig', ...where, '--kubeconfig', bed.provider.kubeconfig);
  if (!direct.includes(bed.provider.server))
    throw new Error(
      `the tenant's kubeconfig does not name ${bed.provider.server}: no proxy can stand before it`,
    );
  await bed.applyObjects(bed.home, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: SYSTEM, name: `${node}-kubeconfig` },
      stringData: { kubeconfig: direct.replace(bed.provider.server, proxy.url) },
    },
    {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'VirtualNode',
      metadata: { name: node },
      spec: {
        kubeconfigSecretRef: { namespace: SYSTEM, name: `${node}-kubeconfig` },
        resources: { cpu: '100', memory: '100Gi', pods: '60' },
        namespaces: [{ homeNamespace: namespace, tenantNamespace: tenant }],
      },
    },
  ]);
  const printed = bed.tributary(
    'manifests',
    'peer',
    '--virtual-node',
    node,
    '--namespaces',
    namespace,
    '--image',
    'none',
  );
  await bed.apply(bed.home, printed, ({ kind }) => kind !== 'Deployment');
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await until(`${namespace} has its account`, async () =>
    (await bed.home.api.get(account)) === undefined ? 'no account' : true,
  );
}

async function argumentsOf(
  { pki }: Cluster,
  { kubeconfig, node, folder }: { kubeconfig: string; node: string; folder: string },
): Promise<string[]> {
  const [kubelet = 0, ops = 0] = await freePorts(2);
  const pair = await pki.authority.issue({ commonName: node, ips: ['127.0.0.1'] });
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key, { mode: 0o600 });
  const options = {
    kubeconfig,
    'virtual-node': node,
    'node-address': '127.0.0.1',
    'kubelet-port': String(kubelet),
    'ops-port': String(ops),
    'tls-cert-file': cert,
    'tls-private-key-file': key,
  };
  return ['run', 'peer', ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])];
}
