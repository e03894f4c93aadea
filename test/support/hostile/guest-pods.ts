/** Pods that tests make in the name of a peer, in tenants whose webhook is asked. */
import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import type { Draft, Pod } from '../../../src/api/wire.ts';

/** They are on no node, so that only the test changes them. */
export const NOWHERE: object = { nodeSelector: { never: 'there' } };

const IMAGE = 'example/none:1';

export const guestPod = (namespace: string, name: string, cpu: string, spec: object = {}): Draft<Pod> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace, name, labels: { [LABEL_HOME_UID]: 'uid' } },
  spec: {
    containers: [{ name: 'main', image: IMAGE, resources: { requests: { cpu } } }],
    ...NOWHERE,
    ...spec,
  },
});

const apart = (namespaceSelector: object): object => ({
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', namespaceSelector },
    ],
  },
});

/**
 * Wants images that others have pulled, in all places where a pod can name one, two taints, and nodes without the pods of anybody.
 */
export const CUNNING: object = {
  affinity: apart({}),
  containers: [
    { name: 'main', image: IMAGE, imagePullPolicy: 'Never', resources: { requests: { cpu: '1m' } } },
  ],
  initContainers: [{ name: 'init', image: IMAGE, imagePullPolicy: 'IfNotPresent' }],
  volumes: [{ name: 'v', image: { reference: IMAGE, pullPolicy: 'Never' } }],
  tolerations: ['theirs', 'ours'].map((key) => ({ key, operator: 'Exists' })),
};
export const CUNNING_LATER: object = { name: 'look', image: IMAGE, imagePullPolicy: 'Never' };

/** What of it is let in, where images are pulled with the pod's own credentials. */
export const LET_IN: object = {
  affinity: apart({ matchLabels: { 'tributary.dev/peer': 'rome' } }),
  containers: [{ imagePullPolicy: 'Always' }],
  initContainers: [{ imagePullPolicy: 'Always' }],
  volumes: [{ image: { pullPolicy: 'Always' } }],
};
