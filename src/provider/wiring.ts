import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import type { Node, Pod } from '../api/wire.ts';
import type { Controller } from '../kube/controller.ts';
import type { Informer } from '../kube/informer.ts';
import { deepEqual } from '../lib/equality.ts';
import type { ForeignCluster } from './foreign.ts';
import { podReferences } from './forge/references.ts';
import { podKey, referenceKey } from './home-pods.ts';
import type { ForeignContact } from './node/contact.ts';
import { homeReferenceName } from './reflect/reflector.ts';
import type { Tenants } from './tenants.ts';

/** The parts that are joined here: caches that change, and controllers that are to look. */
export interface Wired {
  readonly nodeName: string;
  readonly homePods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly virtualNodes: Informer<VirtualNode>;
  readonly tenants: Tenants;
  readonly contact: ForeignContact;
  readonly foreign: ForeignCluster;
  readonly controllers: Readonly<Record<'node' | 'pods' | 'reflect' | 'tokens', Controller>>;
  /** The namespaces to look after now. */
  readonly mappings: NamespaceMapping[];
}

const TOKEN_SECRET = /^tributary-token-([0-9a-f-]{36})$/u;

/** Which change of which cache concerns which key of which controller. Facts go up, keys go down. */
export function connect(provider: Wired): void {
  connectHomePods(provider);
  connectTenants(provider);
  connectNode(provider);
}

function connectHomePods({ homePods, controllers }: Wired): void {
  homePods.onChange((key, current, previous) => {
    controllers.pods.add(key);
    // A status alone changes neither references nor tokens, and comes far more often than anything else.
    const isSameSpec =
      current?.metadata.uid === previous?.metadata.uid &&
      current?.metadata.generation === previous?.metadata.generation &&
      current?.status?.phase === previous?.status?.phase;
    if (isSameSpec) return;
    for (const pod of [current, previous]) {
      if (pod !== undefined) addDependents({ controllers }, pod);
    }
  });
}

function addDependents({ controllers }: Pick<Wired, 'controllers'>, pod: Pod): void {
  const namespace = pod.metadata.namespace ?? '';
  for (const { kind, name } of podReferences(pod))
    controllers.reflect.add(referenceKey(kind, namespace, name));
  controllers.tokens.add(`${namespace}/${pod.metadata.uid}`);
}

function connectTenants(provider: Wired): void {
  const { tenants, homePods, controllers, nodeName } = provider;
  tenants.listen({
    pod: (homeKey) => controllers.pods.add(homeKey),
    contact: () => controllers.node.add(nodeName),
    synced: (homeNamespace) => {
      controllers.node.add(nodeName);
      enqueueNamespace(provider, homeNamespace);
    },
    reference: (side, kind, homeNamespace, name) => {
      const uid = side === 'remote' && kind === 'Secret' ? TOKEN_SECRET.exec(name)?.[1] : undefined;
      if (uid !== undefined) {
        controllers.tokens.add(`${homeNamespace}/${uid}`);
        for (const pod of homePods.byIndex('uid', uid)) controllers.pods.add(podKey(pod));
        return;
      }
      const homeName = side === 'home' ? name : homeReferenceName(kind, name);
      const key = referenceKey(kind, homeNamespace, homeName);
      const users = homePods.byIndex('references', key);
      // At home most objects are nobody's reference; over there each is a copy of ours.
      if (users.length > 0 || side === 'remote') controllers.reflect.add(key);
      for (const pod of users) controllers.pods.add(podKey(pod));
    },
  });
}

/** Everything of one namespace, in the slow lane: the caches have just become complete, or contact is back. */
function enqueueNamespace({ tenants, homePods, controllers }: Wired, homeNamespace: string): void {
  for (const pod of homePods.list()) {
    if (pod.metadata.namespace !== homeNamespace) continue;
    controllers.pods.addSlow(podKey(pod));
    addDependents({ controllers }, pod);
  }
  const tenant = tenants.of(homeNamespace);
  if (tenant === undefined) return;
  const nameOf = (object: { metadata: { name: string } }): string => object.metadata.name;
  for (const pod of tenant.pods.list()) controllers.pods.addSlow(`${homeNamespace}/${nameOf(pod)}`);
  for (const kind of ['ConfigMap', 'Secret'] as const) {
    for (const copy of tenant.caches[kind].remote.list()) {
      const uid = TOKEN_SECRET.exec(nameOf(copy))?.[1];
      if (uid === undefined) {
        const name = homeReferenceName(kind, nameOf(copy));
        controllers.reflect.add(referenceKey(kind, homeNamespace, name));
      } else controllers.tokens.add(`${homeNamespace}/${uid}`);
    }
  }
}

const mappingsOf = (virtualNode: VirtualNode | undefined): unknown => [
  virtualNode?.spec.namespaces,
  virtualNode?.status?.namespaces,
];

function connectNode(provider: Wired): void {
  const { nodes, virtualNodes, contact, foreign, tenants, controllers, nodeName } = provider;
  nodes.onChange(() => controllers.node.add(nodeName));
  virtualNodes.onChange((_key, current, previous) => {
    tenants.set(provider.mappings);
    controllers.node.add(nodeName);
    // What is asked for, and what is recorded, decides whether pods may be begun.
    if (deepEqual(mappingsOf(current), mappingsOf(previous))) return;
    for (const pod of provider.homePods.list()) controllers.pods.addSlow(podKey(pod));
  });
  foreign.onChange(() => contact.probe());
  contact.onChange(() => {
    controllers.node.add(nodeName);
    if (!contact.state.ok) return;
    for (const tenant of tenants.all()) enqueueNamespace(provider, tenant.mapping.homeNamespace);
  });
}
