/** Who runs a Deployment: the product, the null mirror, or the foreign cluster by itself. */
import { TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import type { Container, Draft, Pod } from '../../src/api/wire.ts';
import type { Bed, ClusterName } from './bed.ts';
import { tenantOf } from './bed.ts';
import type { Given } from '../frame/bench.ts';
import type { Program } from '../frame/program.ts';

export interface Contender {
  /** `agent`, `before`, `null mirror`, `native`, or that of another system. */
  readonly name: string;
  /** Where the Deployment is made. */
  readonly cluster: ClusterName;
  readonly namespace: string;
  /** Where its pods run, when that is somewhere else. */
  readonly tenant?: string;
  readonly node?: string;
  readonly program?: Program;
}

export type Mirror = Contender & Required<Pick<Contender, 'node' | 'program' | 'tenant'>>;

const mirror = (name: string, namespace: string, program: Program): Mirror => ({
  name,
  cluster: 'home',
  namespace,
  tenant: tenantOf(namespace),
  node: namespace,
  program,
});

export const agentContender = async (bed: Bed): Promise<Mirror> =>
  mirror('agent', 'agent', await bed.startAgent());

export const nullContender = async (bed: Bed): Promise<Mirror> =>
  mirror('null mirror', 'null', await bed.startNullMirror());

export const native: Contender = { name: 'native', cluster: 'foreign', namespace: 'native' };

/** All that take part in a run, in the order of their turns. */
export async function mirrors(
  bed: Bed,
  { before, others }: Pick<Given, 'before' | 'others'>,
): Promise<Mirror[]> {
  const all = [await agentContender(bed), await nullContender(bed)];
  if (before !== undefined) all.push(mirror('before', 'before', await bed.startBefore()));
  for (const other of others) all.push(mirror(other.name, other.name, await bed.startOther(other)));
  return all;
}

export const DEPLOYMENT = 'burst';

/** As a service of everyday size would ask for it: some 4 KB a pod once the API server has filled in its defaults. */
export function deployment({ namespace, node }: Contender, replicas: number): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: DEPLOYMENT, namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: DEPLOYMENT } },
      strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: {
        metadata: podMeta,
        spec: {
          ...podSpec,
          ...(node === undefined
            ? {}
            : { nodeSelector: { 'kubernetes.io/hostname': node }, tolerations: [toleration] }),
        },
      },
    },
  };
}

/** One pod of that kind, bound from the start: no scheduler takes part. */
export const boundPod = ({ namespace, node }: Mirror, name: string): Draft<Pod> => ({
  metadata: { ...podMeta, name, namespace },
  spec: { ...podSpec, nodeName: node, tolerations: [toleration] },
});

const probe = { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 10 };
const container: Container = {
  name: 'main',
  image: 'example.org/none:1',
  args: ['--listen=:8080', '--log-format=json'],
  env: [
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    ...['LEVEL', 'REGION', 'ZONE', 'MODE'].map((name) => ({ name, value: name.toLowerCase() })),
  ],
  ports: [{ name: 'http', containerPort: 8080 }],
  readinessProbe: probe,
  livenessProbe: probe,
  resources: { requests: { cpu: '10m', memory: '16Mi' } },
};

const podMeta = {
  labels: { app: DEPLOYMENT, 'app.kubernetes.io/part-of': 'bench' },
  annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8080' },
};
const podSpec = { terminationGracePeriodSeconds: 1, containers: [container] };
const toleration = { key: TAINT_VIRTUAL_NODE, operator: 'Exists', effect: 'NoSchedule' };
