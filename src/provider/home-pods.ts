import { pods } from '../api/resources.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { claimNames, podReferences, type ReferenceKind } from './forge/references.ts';

/** Key in the index of objects that pods refer to. */
export const referenceKey = (kind: ReferenceKind, namespace: string, name: string): string =>
  `${kind}/${namespace}/${name}`;

/** The pods bound to the virtual node, with indexes by UID and by the objects that they refer to. */
export function homePodInformer(options: {
  home: KubeClient;
  nodeName: string;
  clock: Clock;
  log: Logger;
}): Informer<Pod> {
  const { home, nodeName, clock, log } = options;
  return new Informer<Pod>({
    client: home,
    type: pods,
    list: { fieldSelector: `spec.nodeName=${nodeName}` },
    clock,
    log: log.named('home-pods'),
    packs: true,
    indexes: {
      uid: (pod) => [pod.metadata.uid],
      references: (pod) =>
        podReferences(pod).map(({ kind, name }) => referenceKey(kind, pod.metadata.namespace ?? '', name)),
      claims: (pod) => claimNames(pod).map((name) => `${pod.metadata.namespace}/${name}`),
    },
  });
}

export const podKey = (pod: Pod): string => `${pod.metadata.namespace}/${pod.metadata.name}`;

/** Key in the queue of tokens. */
export const tokenKey = ({ metadata }: Pod): string => tokenKeyOf(metadata.namespace ?? '', metadata.uid);
export const tokenKeyOf = (namespace: string, uid: string): string => `${namespace}/${uid}`;
