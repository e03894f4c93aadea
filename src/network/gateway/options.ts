import type { WireGuardChoice } from '../../api/tunnel.ts';
import type { Caches } from '../../kube/caches.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import type { ControllerMetrics } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { HostNetwork } from '../host/host-config.ts';
import type { Prober } from '../probe/prober.ts';
import type { Responder } from '../probe/responder.ts';
import type { NodeWatchOptions } from './node-watch.ts';
import type { TunnelMetrics } from './reports.ts';
import type { LookUp } from './resolver.ts';

export interface GatewayOptions extends ClusterBasics {
  caches: Caches;
  host: HostNetwork;
  prober: Pick<Prober, 'setTargets' | 'results' | 'onChange' | 'onMiss' | 'isCalm'>;
  responder: Pick<Responder, 'setAddress'>;
  nodes: Omit<NodeWatchOptions, 'log'>;
  lookUp: LookUp;
  /** Addresses of the DNS servers that this host asks. */
  nameServers?: () => readonly string[];
  events: EventRecorder;
  metrics: TunnelMetrics;
  controllerMetrics?: ControllerMetrics;
  /** Where our Secrets and ConfigMaps are. */
  namespace: string;
  nodeName: string;
  /** Address of the node, for peers. Used where the ConfigMap tributary-network does not have it. */
  nodeAddress?: string;
  link: string;
  vxlanLink: string;
  mtu: number;
  /** UDP. */
  port: number;
  /** Whose WireGuard; default `auto`. */
  wireguard?: WireGuardChoice;
  /** `host:port` at which peers dial us. Empty: they cannot. Absent: the node's address. */
  endpoints?: readonly string[];
  probeSeconds: number;
  /** Told by the clock and not by a timer: a process that was stopped for a while must not touch the host. */
  leading: () => boolean;
}
