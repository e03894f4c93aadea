/** Who runs a Deployment: the product, the null mirror, or the foreign cluster by itself. */
import { TAINT_VIRTUAL_NODE } from '../src/api/names.ts';
import type { Bed, ClusterName } from './bed.ts';
import { tenantOf } from './bed.ts';
import type { Program } from './program.ts';

export interface Contender {
  readonly name: 'agent' | 'null mirror' | 'native';
  /** Where the Deployment is made. */
  readonly cluster: ClusterName;
  readonly namespace: string;
  /** Where its pods run, when that is somewhere else. */
  readonly tenant?: string;
  readonly node?: string;
  readonly program?: Program;
}

export const agentContender = async (bed: Bed): Promise<Contender & { program: Program }> => ({
  name: 'agent',
  cluster: 'home',
  namespace: 'agent',
  tenant: tenantOf('agent'),
  node: 'agent',
  program: await bed.startAgent(),
});

export const nullContender = async (bed: Bed): Promise<Contender & { program: Program }> => ({
  name: 'null mirror',
  cluster: 'home',
  namespace: 'null',
  tenant: tenantOf('null'),
  node: 'null',
  program: await bed.startNullMirror(),
});

export const native: Contender = { name: 'native', cluster: 'foreign', namespace: 'native' };

export const DEPLOYMENT = 'burst';

/** As a service of everyday size would ask for it: some 4 KB a pod once the API server has filled in its defaults. */
export function deployment({ namespace, node }: Contender, replicas: number): object {
  const labels = { app: DEPLOYMENT, 'app.kubernetes.io/part-of': 'bench' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: DEPLOYMENT, namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: DEPLOYMENT } },
      strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: {
        metadata: { labels, annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8080' } },
        spec: {
          ...(node === undefined
            ? {}
            : {
                nodeSelector: { 'kubernetes.io/hostname': node },
                tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists', effect: 'NoSchedule' }],
              }),
          terminationGracePeriodSeconds: 1,
          containers: [container],
        },
      },
    },
  };
}

const probe = { httpGet: { path: '/healthz', port: 'http' }, periodSeconds: 10 };
const container = {
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
