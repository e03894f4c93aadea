/** What is in the two clusters. */
import { virtualNodeObjects } from '../frame/virtual-node.ts';

/** In the pod: one sends the file, one a word, and both close then. */
export const PORTS = { file: 9000, word: 9001 } as const;
export type Port = keyof typeof PORTS;
/** In the pod: what comes is sent back. */
export const ECHO_PORT = 9002;
/** As long as the log, of the same lines. */
export const FILE = '/tmp/file';

/** Many programs write lines of about this length. */
const LINE = 'The quick brown fox jumps over the lazy dog, and the log says so. '.repeat(2).trim();

/** Writes its log at once, then listens. */
const script = (bytes: number): string =>
  [
    `yes '${LINE}' | head -c ${bytes} > ${FILE}`,
    `cat ${FILE}; echo`,
    `nc -ll -p ${PORTS.file} -e cat ${FILE} &`,
    `nc -ll -p ${PORTS.word} -e echo word &`,
    `nc -ll -p ${ECHO_PORT} -e cat &`,
    'echo ready; trap exit TERM; while :; do sleep 1 & wait $!; done',
  ].join('\n');

/** A pod of home that is bound to the virtual node of that name. */
export const podOf = (node: string, bytes: number): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: node, name: 'pod' },
  spec: {
    nodeName: node,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'main',
        image: 'lab.local/busybox:1',
        command: ['sh', '-c', script(bytes)],
        resources: { requests: { cpu: '5m' } },
      },
    ],
  },
});

/** The virtual node with its namespace and credential. */
export const virtualNodeOf = (name: string, tenant: string, kubeconfig: string): object => ({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    ...virtualNodeObjects({
      name,
      kubeconfig,
      namespace: { tenantNamespace: tenant },
      resources: { cpu: '4', memory: '4Gi', pods: '9' },
    }),
  ],
});
