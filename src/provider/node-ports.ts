import type { Service } from '../api/wire.ts';
import type { Clock } from '../lib/clock.ts';
import { Debounce } from '../lib/debounce.ts';
import { Listeners } from '../lib/listeners.ts';
import { serviceKind } from './reflect/services.ts';
import type { Tenants } from './tenants.ts';

/** A node port, and where what arrives there is sent. */
export interface NodePort {
  protocol: 'TCP' | 'UDP';
  port: number;
  /** Of the Service at home, whose kube-proxy chooses the endpoint. */
  clusterIP: string;
  servicePort: number;
  /** `namespace/name` of the Service. */
  service: string;
}

/** One agent listens on so many at most: those of the first Services by name. */
export const MAX_NODE_PORTS = 256;

/**
 * Node ports of Services, as every node answers on them. With `externalTrafficPolicy: Local` a node answers only for its own pods and
 * keeps the address of the client, which nobody could do here; as a node without such pods it does not answer. Pure.
 */
export function nodePortsOf(services: Iterable<Service>): NodePort[] {
  const all = [...services].flatMap(({ metadata, spec }): NodePort[] => {
    const { type, clusterIP = '', externalTrafficPolicy, ports = [] } = spec ?? {};
    if ((type !== 'NodePort' && type !== 'LoadBalancer') || clusterIP === '' || clusterIP === 'None')
      return [];
    if (externalTrafficPolicy === 'Local' || metadata.deletionTimestamp !== undefined) return [];
    const service = `${metadata.namespace}/${metadata.name}`;
    return ports.flatMap(({ protocol = 'TCP', port: servicePort, nodePort: port = 0 }) =>
      port > 0 && (protocol === 'TCP' || protocol === 'UDP')
        ? [{ protocol, port, clusterIP, servicePort, service }]
        : [],
    );
  });
  const byName = (a: NodePort, b: NodePort): number =>
    a.service === b.service ? a.port - b.port : a.service < b.service ? -1 : 1;
  return all.toSorted(byName).slice(0, MAX_NODE_PORTS);
}

const INTERVAL_MS = 200;

/** Node ports of the Services of all offloaded namespaces, as home has them now. */
export class HomeNodePorts {
  readonly #tenants: Pick<Tenants, 'all'>;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #soon: Debounce;

  constructor(tenants: Pick<Tenants, 'all'>, clock: Clock) {
    this.#tenants = tenants;
    this.#soon = new Debounce({ clock, intervalMs: INTERVAL_MS, callsAtOnce: false }, () =>
      this.#listeners.tell(),
    );
  }

  list(): NodePort[] {
    const services = [...this.#tenants.all()].flatMap((tenant) => [
      ...(tenant.mirror.of(serviceKind.kind)?.home.list() ?? []),
    ]);
    return nodePortsOf(services as Service[]);
  }

  /** Something changed from which they follow. */
  look(): void {
    this.#soon.trigger();
  }

  stop(): void {
    this.#soon.stop();
  }
}
