import type { VirtualNode } from '../api/virtual-node.ts';
import type { Node, Pod } from '../api/wire.ts';
import type { Controller } from '../kube/controller.ts';
import type { Cache } from '../kube/cache.ts';
import type { Informer } from '../kube/informer.ts';
import type { ControllerName } from './controllers.ts';
import type { EventsHome } from './events/events-home.ts';
import type { ForeignCluster } from './foreign.ts';
import type { HomeLease } from './home-lease.ts';
import type { OffloadedNamespaces } from './namespaces.ts';
import type { NetworkView } from './network-view.ts';
import type { ForeignContact } from './node/contact.ts';
import type { Room } from './node/room.ts';
import type { HomeNodePorts } from './node-ports.ts';
import type { PodReconciler } from './pods/reconciler.ts';
import type { MirrorTroubles } from './reflect/mirror-troubles.ts';
import type { Reflector } from './reflect/reflector.ts';
import type { TokenReconciler } from './reflect/tokens.ts';
import type { PolicyStates } from './policy-states.ts';
import type { Siblings } from './siblings.ts';
import type { Storage } from './storage/storage.ts';
import type { Tenants } from './tenants.ts';

/** The parts of a Provider that are connected with each other: caches that change, and controllers that react. */
export interface Wired {
  readonly nodeName: string;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly nodes: Cache<Node>;
  readonly siblings: Siblings;
  readonly homePods: Informer<Pod>;
  readonly pods: Pick<PodReconciler, 'isEcho'>;
  readonly tenants: Tenants;
  readonly namespaces: OffloadedNamespaces;
  readonly foreign: ForeignCluster;
  readonly contact: ForeignContact;
  readonly homeLease: HomeLease;
  readonly network: NetworkView;
  readonly room: Room;
  readonly nodePorts: HomeNodePorts;
  readonly reflector: Reflector;
  readonly troubles: MirrorTroubles;
  readonly tokens: TokenReconciler;
  readonly events: EventsHome;
  readonly storage: Storage;
  readonly policies: PolicyStates;
  readonly controllers: Readonly<Record<ControllerName, Controller>>;
}
