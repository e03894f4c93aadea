/** Two clusters with a link and the real endpoint between them, and `Reach` on both sides. */
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { ReachLimits } from '../../../src/peering/reach/ports.ts';
import { Reach } from '../../../src/peering/reach/reach.ts';
import { linked, PeeringNode } from './peering-node.ts';

export interface ReachNode {
  node: PeeringNode;
  reach: Reach;
}

function reachNode(
  apiPort: () => number,
  endpoints: () => string[],
  limits?: Partial<ReachLimits>,
): ReachNode {
  const held: { node?: PeeringNode } = {};
  const node = (): PeeringNode => held.node as PeeringNode;
  const reach = new Reach({
    peers: {
      isLinked: (id) => node().registry.view(id) !== undefined,
      endpoints,
      askDial: async (id, stream, signal) => node().registry.call(id, 'dial', { stream }, signal),
      dial: async (target, signal) =>
        node().registry.dialer.open({ ...target, signal }, (socket) => {
          socket.pause();
          return socket;
        }),
    },
    mayReach: () => true,
    apiServer: () => ({ host: '127.0.0.1', port: apiPort() }),
    listen: { host: '127.0.0.1' },
    ...(limits && { limits }),
    clock: systemClock,
    log: silentLogger,
  });
  held.node = new PeeringNode({
    registry: { dialBack: async (peer, params, signal) => reach.dialBack(peer, params, signal) },
    handlers: {
      stream: (socket, caller, id) => reach.acceptStream(socket, caller, id),
      api: (socket, caller) => reach.acceptApi(socket, caller),
    },
  });
  return { node: node(), reach };
}

export interface ReachPair {
  consumer: ReachNode;
  provider: ReachNode;
  /** ClusterID of the provider. */
  id: string;
  down(): Promise<void>;
}

/** `direct`: the consumer dials; else only the provider can. */
export async function reachPair(options: {
  direct: boolean;
  apiPort: () => number;
  limits?: Partial<ReachLimits>;
}): Promise<ReachPair> {
  const { direct, apiPort, limits } = options;
  const addresses = { consumer: '', provider: '' };
  const consumer = reachNode(apiPort, () => (direct ? [addresses.provider] : []), limits);
  const provider = reachNode(apiPort, () => [addresses.consumer], limits);
  await Promise.all([consumer.node.start(), provider.node.start()]);
  addresses.consumer = consumer.node.address;
  addresses.provider = provider.node.address;
  const [dialler, dialled] = direct ? [consumer, provider] : [provider, consumer];
  dialler.node.dial(dialled.node);
  await linked(consumer.node, provider.node);
  return {
    consumer,
    provider,
    id: provider.node.id,
    down: async () => {
      await Promise.all([consumer.reach.stop(), provider.reach.stop()]);
      await Promise.all([consumer.node.stop(), provider.node.stop()]);
    },
  };
}
