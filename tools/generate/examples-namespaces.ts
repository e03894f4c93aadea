/** Objects that a person writes so that a namespace stretches over clusters, and so that Services are shared. */
import type { AcceptancePolicy } from '../../src/api/acceptance-policy.ts';
import { OFFLOADING_NAME, type NamespaceOffloading } from '../../src/api/namespace-offloading.ts';
import type { SharingPolicy } from '../../src/api/sharing-policy.ts';
import { API_VERSION } from '../../src/api/virtual-node.ts';
import type { Written } from './examples-peering.ts';

const TIMETABLES = { group: 'times.example.com', resource: 'timetables' };

const offloading: Written<NamespaceOffloading> = {
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
  metadata: { name: OFFLOADING_NAME, namespace: 'shop' },
  spec: {
    clusterSelector: { matchLabels: { 'topology.kubernetes.io/region': 'north' } },
    podStrategy: 'LocalAndRemote',
    naming: 'Same',
    reflection: [
      { resource: 'secrets', policy: 'OptIn' },
      { ...TIMETABLES, policy: 'All', drop: ['spec.clusterName'] },
    ],
    existingPods: 'Stay',
    onRemoval: 'Return',
    releaseAfterSeconds: 60,
    holdOffSeconds: 600,
  },
};

const sharing: Written<SharingPolicy> = {
  apiVersion: API_VERSION,
  kind: 'SharingPolicy',
  metadata: { name: 'neighbours' },
  spec: {
    peers: { matchLabels: { site: 'north' } },
    approval: 'Manual',
    namespaceNaming: 'SameIfFree',
    ingressClasses: ['haproxy'],
    ingressHosts: ['shop.example.com'],
    reflectableKinds: [TIMETABLES],
    services: [{ namespace: 'data', selector: { matchLabels: { shared: 'yes' } } }],
  },
};

const acceptance: Written<AcceptancePolicy> = {
  apiVersion: API_VERSION,
  kind: 'AcceptancePolicy',
  metadata: { name: 'neighbours' },
  spec: {
    peers: { matchLabels: { site: 'north' } },
    approval: 'Automatic',
    services: [{ namespace: 'data', name: 'db', homeNamespace: 'shop', homeName: 'postgres' }],
  },
};

/** Path -> what it shows, and the objects. */
export const NAMESPACE_EXAMPLES: Readonly<Record<string, [comment: string, objects: readonly object[]]>> = {
  'deploy/examples/namespace-offloading.yaml': [
    'At home: a namespace that stretches over all clusters of one region, under its own name. All but clusterSelector,\n' +
      '# naming and reflection is as without these lines; the label tributary.dev/offload=true on it is the short form.',
    [offloading],
  ],
  'deploy/examples/namespace-policies.yaml': [
    'What a provider lets in and offers besides pods, and, at home, a Service of its that is used.',
    [sharing, acceptance],
  ],
};
