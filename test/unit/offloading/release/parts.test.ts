import { describe, expect, test } from '@jest/globals';

import type { HeldOff, NamespaceOffloadingSpec } from '../../../../src/api/namespace-offloading.ts';
import type { ObjectMeta, Pod, PodSpec, Toleration } from '../../../../src/api/wire.ts';
import { admit } from '../../../../src/offloading/admission/decide.ts';
import { MAX_HELD_OFF, ownerKey, withHeldOff } from '../../../../src/offloading/held-off.ts';
import { journalOf, journalSecret, readJournal } from '../../../../src/offloading/release/journal.ts';
import { remadePod } from '../../../../src/offloading/release/remade-pod.ts';
import { at, boundPod, NOW, NOW_MS, offloading, REPLICA_SET } from './support.ts';

describe('owners', () => {
  const guest = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' };
  test.each([
    ['its controller', [guest, REPLICA_SET], 'ReplicaSet/web-1'],
    ['none', undefined, 'Pod/web-1-a'],
    ['an owner that is no controller', [guest], 'Pod/web-1-a'],
  ])('%s', (_name, ownerReferences, expected) => {
    expect(ownerKey(boundPod(ownerReferences === undefined ? {} : { ownerReferences }))).toBe(expected);
  });
});

describe('the list of owners held off', () => {
  const entry = (owner: string, seconds: number): HeldOff => ({
    owner,
    virtualNode: 'milan',
    until: at(seconds),
  });

  test('is bounded: what ends first goes', () => {
    const full = Array.from({ length: MAX_HELD_OFF }, (_, index) => entry(`Job/${index}`, 1000 - index));
    const list = withHeldOff(full, entry('Job/new', 10), NOW_MS);
    expect(list).toHaveLength(MAX_HELD_OFF);
    expect(list.map(({ owner }) => owner)).not.toContain(`Job/${MAX_HELD_OFF - 1}`);
    expect(list.at(-1)).toEqual(entry('Job/new', 10));
  });

  test('holds each pair once, and nothing that has passed or cannot be read', () => {
    const odd = { ...entry('Job/odd', 0), until: 'soon' };
    const list = withHeldOff([entry('Job/a', 5), entry('Job/b', 0), odd], entry('Job/a', 9), NOW_MS);
    expect(list).toEqual([entry('Job/a', 9)]);
  });
});

/** As the API server, its admission and our webhook leave it. */
function admitted(spec: PodSpec, by: NamespaceOffloadingSpec): Pod {
  const pod: Pod = { ...boundPod(), spec };
  const { patch } = admit(pod, { offloading: offloading(by), failedNodes: [], isOpen: false, nowMs: NOW_MS });
  return patch.reduce<Pod>((whole, { path, value }) => set(whole, path, value) as Pod, pod);
}

function set(target: unknown, path: string, value: unknown): unknown {
  const [, head = '', ...rest] = path.split('/');
  const name = head.replaceAll('~1', '/');
  const copy = structuredClone(target ?? {}) as Record<string, unknown>;
  if (Array.isArray(copy)) return [...(copy as unknown[]), value];
  copy[name] = rest.length === 0 ? value : set(copy[name], `/${rest.join('/')}`, value);
  return copy;
}

const PLAIN: PodSpec = { containers: [{ name: 'main', image: 'web:1' }] };
const required = (...matchExpressions: object[]): PodSpec =>
  ({
    ...PLAIN,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
      },
    },
  }) as PodSpec;

describe('a pod as it was before admission', () => {
  const selector = {
    matchLabels: { region: 'south' },
    matchExpressions: [{ key: 'gpu', operator: 'Exists' as const }],
  };
  const wish = { key: 'disk', operator: 'In', values: ['fast'] };
  const notRome = { key: 'tributary.dev/virtual-node', operator: 'NotIn', values: ['rome'] };
  const strategies = ['LocalAndRemote', 'Remote'] as const;
  const specs: [string, PodSpec][] = [
    ['a plain pod', PLAIN],
    ['one with a node affinity of its own', required(wish)],
    ['one that does not want a certain virtual node', required(notRome)],
  ];

  test.each(strategies.flatMap((strategy) => specs.map(([name, spec]) => [strategy, name, spec] as const)))(
    '%s, %s: what the webhook has added is taken out',
    (podStrategy, _name, spec) => {
      const by = { podStrategy, clusterSelector: selector };
      const pod = admitted(spec, by);
      expect(pod.spec).not.toEqual(spec);
      const { tolerations = [], ...made } = remadePod(pod, selector).spec ?? PLAIN;
      expect(tolerations).toEqual([]);
      expect(made).toEqual(spec);
    },
  );

  test('a pod that the webhook has not seen keeps what it asked for', () => {
    const tolerations = [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }];
    const spec = {
      ...required({ key: 'tributary.dev/node-type', operator: 'In', values: ['virtual-node'] }),
      tolerations,
    };
    expect(remadePod({ ...boundPod(), spec }).spec).toEqual(spec);
  });

  test('it is no longer held off where it was released from before', () => {
    const spec = required(wish, { ...notRome, values: ['genoa', 'rome'] });
    const annotations = { 'tributary.dev/strategy': 'Remote', 'tributary.dev/released-from': 'rome' };
    const pod = { ...boundPod({ annotations }), spec };
    expect(remadePod(pod).spec).toEqual(required(wish));
    expect(remadePod(pod).metadata.annotations).toEqual({});
  });

  test('it avoids no virtual node any more that could not take it then, and those that it excludes itself', () => {
    const annotations = { 'tributary.dev/strategy': 'Remote', 'tributary.dev/avoids': 'milan,oslo' };
    const avoided = { ...notRome, values: ['milan', 'oslo'] };
    const pod = { ...boundPod({ annotations }), spec: required(wish, notRome, avoided) };
    expect(remadePod(pod).spec).toEqual(required(wish, notRome));
    expect(remadePod(pod).metadata.annotations).toEqual({});
  });

  test('what belongs to one life of a pod, and what admission computes, is left out', () => {
    const token = { name: 'kube-api-access-x', projected: { sources: [] } };
    const mounts = [
      { name: 'kube-api-access-x', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
      { name: 'data', mountPath: '/data' },
    ];
    const fault = (key: string, tolerationSeconds: number): Toleration => ({
      key: `node.kubernetes.io/${key}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds,
    });
    const pod: Pod = {
      ...boundPod({
        labels: { app: 'web', 'topology.kubernetes.io/zone': 'z' },
        finalizers: ['foregroundDeletion', 'example.com/hold'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' }],
        generateName: 'web-1-',
      } as Partial<Pod['metadata']>),
      spec: {
        nodeName: 'milan',
        priority: 0,
        preemptionPolicy: 'PreemptLowerPriority',
        overhead: { cpu: '1' },
        serviceAccount: 'web',
        serviceAccountName: 'web',
        containers: [{ name: 'main', image: 'web:1', volumeMounts: mounts }],
        initContainers: [{ name: 'init', image: 'web:1', volumeMounts: mounts.slice(0, 1) }],
        ephemeralContainers: [{ name: 'debug', image: 'sh' }],
        volumes: [token, { name: 'data', emptyDir: {} }],
        tolerations: [fault('not-ready', 300), fault('unreachable', 5)],
      },
    };
    expect(remadePod(pod)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'web-1-a',
        namespace: 'shop',
        labels: { app: 'web' },
        annotations: {},
        ownerReferences: pod.metadata.ownerReferences,
        finalizers: ['example.com/hold'],
      },
      spec: {
        serviceAccountName: 'web',
        containers: [{ name: 'main', image: 'web:1', volumeMounts: mounts.slice(1) }],
        initContainers: [{ name: 'init', image: 'web:1', volumeMounts: [] }],
        volumes: [{ name: 'data', emptyDir: {} }],
        tolerations: [fault('unreachable', 5)],
      },
    });
  });
});

describe('the journal', () => {
  const journal = journalOf(boundPod(), { from: 'milan', unlessStarted: true });
  const stored = { uid: 's', resourceVersion: '1', creationTimestamp: NOW };
  const secret = journalSecret(journal, 'tributary-system');
  const named = (name: string): ObjectMeta => ({ ...stored, name, namespace: 'tributary-system' });

  test('comes back as it was written', () => {
    const metadata = named(secret.metadata.name ?? '');
    expect(readJournal({ metadata, ...(secret.data && { data: secret.data }) })).toEqual(journal);
    expect(journal.pod.metadata.annotations).toEqual({
      'tributary.dev/released-from': 'milan',
      'tributary.dev/remade-for': 'u1',
    });
  });

  const encoded = (text: string): { journal: string } => ({ journal: Buffer.from(text).toString('base64') });
  test.each([
    ['nothing', {}],
    ['no JSON', encoded('{"secret-value')],
    ['no pod', encoded('{"uid":"u1"}')],
    ['that of another', encoded('{"uid":"u2","pod":{"metadata":{"name":"a","namespace":"b"}}}')],
  ])('that holds %s is invalid, and not quoted', (_name, data) => {
    const read = (): unknown => readJournal({ metadata: named('tributary-remake-u1'), data });
    expect(read).toThrow(expect.objectContaining({ code: 'Invalid' }));
    expect(read).not.toThrow(/secret-value/);
  });
});
