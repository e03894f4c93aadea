/**
 * The least that a virtual node can do, to measure the product against: a home pod that appears is created over
 * there, a remote pod that turns Ready is written home, in that causal order, and deletion goes the same way. The
 * product's client and informers, and nothing else: no checks, no queue, no retries, no references, no events.
 *
 *     node bench/pods/null-mirror.ts HOME_KUBECONFIG FOREIGN_KUBECONFIG NODE HOME_NAMESPACE TENANT_NAMESPACE PODS
 */
import { readFile } from 'node:fs/promises';

import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { nodes, pods } from '../../src/api/resources.ts';
import type { Draft, Node, Pod } from '../../src/api/wire.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { LeaseKeeper } from '../../src/kube/lease-keeper.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { errorMessage } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { isReady } from './readiness.ts';

const [homeFile = '', foreignFile = '', nodeName = '', namespace = '', tenant = '', most = ''] =
  process.argv.slice(2);
const open = async (file: string): Promise<HttpClient> =>
  createClient(await parseKubeconfig(await readFile(file, 'utf8')));
const [home, foreign] = [await open(homeFile), await open(foreignFile)];
const common = { clock: systemClock, log: silentLogger };
const homePods = new Informer<Pod>({
  ...common,
  client: home,
  type: pods,
  list: { fieldSelector: `spec.nodeName=${nodeName}` },
});
const remotePods = new Informer<Pod>({
  ...common,
  client: foreign,
  type: pods,
  list: { namespace: tenant },
});
const forever = new AbortController().signal;

const attempt = (what: string, call: Promise<unknown>): void => {
  call.catch((error: unknown) => process.stdout.write(`${what}: ${errorMessage(error)}\n`));
};

/** The API server refuses a pod with another cluster's node, account and token volume. */
function remoteOf(pod: Pod): Draft<Pod> {
  const {
    nodeName: _node,
    nodeSelector: _selector,
    serviceAccount: _account,
    serviceAccountName: _name,
    tolerations: _tolerations,
    priority: _priority,
    preemptionPolicy: _preemption,
    volumes: _volumes,
    ...spec
  } = pod.spec ?? { containers: [] };
  return {
    metadata: {
      name: pod.metadata.name,
      namespace: tenant,
      // A provider takes pods of peers only with it.
      labels: { ...pod.metadata.labels, [LABEL_HOME_UID]: pod.metadata.uid },
    },
    spec: {
      ...spec,
      automountServiceAccountToken: false,
      containers: spec.containers.map(({ volumeMounts: _mounts, ...container }) => container),
    },
  };
}

homePods.onChange((_key, pod, previous) => {
  if (pod !== undefined && previous === undefined) attempt('create', foreign.create(pods, remoteOf(pod)));
  const wasEnding = previous?.metadata.deletionTimestamp !== undefined;
  if (pod?.metadata.deletionTimestamp === undefined || wasEnding) return;
  attempt('delete', foreign.delete(pods, { name: pod.metadata.name, namespace: tenant }));
});

remotePods.onChange((_key, pod, previous) => {
  const { name } = (pod ?? previous)?.metadata ?? { name: '' };
  if (pod === undefined) {
    attempt('finish', home.delete(pods, { name, namespace }, { gracePeriodSeconds: 0 }));
  } else if (isReady(pod) && !(previous !== undefined && isReady(previous))) {
    const here = homePods.get(`${namespace}/${name}`);
    if (here === undefined || pod.status === undefined) return;
    attempt(
      'status',
      home.replace(pods, { ...here, status: { ...here.status, ...pod.status } }, { subresource: 'status' }),
    );
  }
});

const lease = new LeaseKeeper({
  ...common,
  client: home,
  namespace: 'kube-node-lease',
  name: nodeName,
  identity: nodeName,
  durationMs: 40_000,
});
lease.start(forever);
await Promise.all([homePods.start(forever), remotePods.start(forever)]);
const capacity = { cpu: '1000', memory: '1000Gi', pods: most };
const now = new Date(systemClock.now()).toISOString().replace(/\.\d+Z$/u, 'Z');
await home.create<Node>(nodes, {
  metadata: { name: nodeName, labels: { 'kubernetes.io/hostname': nodeName } },
  status: {
    capacity,
    allocatable: capacity,
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Mirror', lastHeartbeatTime: now, lastTransitionTime: now },
    ],
  },
});
