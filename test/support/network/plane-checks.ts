/** What the tests of the data plane do with clusters of PlaneLab. */
import { expect } from '@jest/globals';

import type { PlaneCluster, PlaneLab, PlaneOptions } from './plane-lab.ts';
import { type PlanePod, TCP_PORT, UDP_PORT } from './plane-node.ts';
import { awaited } from '../eventually.ts';
import { offload } from './plane-tunnels.ts';

/**
 * A pod connects to another one at the address at which its cluster sees that pod, and the other one sees it at the
 * expected source address.
 */
export async function expectTalk(from: Party, to: Party): Promise<void> {
  const address = from.cluster.side.sees(to.cluster.side, to.pod.address);
  const seen = to.cluster.side.sees(from.cluster.side, from.pod.address);
  // If the first handshakes of both sides cross, WireGuard tries again after 5 s.
  await expectAnswer(async () => from.pod.ping(address), true);
  await expectAnswer(async () => from.pod.ask('tcp', address), seen);
  await expectAnswer(async () => from.pod.ask('udp', address), seen);
}

/**
 * The first answer is the expected one. Each `ask` and `ping` waits for a second, in which a busy machine may not get to run the server
 * or the tunnel.
 */
export async function expectAnswer<T extends string | true>(
  look: () => Promise<T | undefined | false>,
  expected: T,
): Promise<void> {
  expect(await awaited(`the answer ${expected}`, look)).toBe(expected);
}

export interface Party {
  cluster: PlaneCluster;
  pod: PlanePod;
}

/** A cluster with a pod on its first node. */
export async function party(lab: PlaneLab, name: string, options: PlaneOptions = {}): Promise<Party> {
  const cluster = await lab.cluster(name, options);
  return { cluster, pod: await cluster.pod() };
}

/** The pod of `provider` is a remote pod of the home. */
export const lend = (home: Party, provider: Party): void =>
  offload(home.cluster.side, provider.cluster.side, provider.pod.address);

export async function refusedBy({ gatewayNode }: PlaneCluster, label: string): Promise<number> {
  const listed = await gatewayNode.run(['nft', 'list', 'table', 'inet', 'tributary_gateway']);
  const counters = [...listed.matchAll(/counter packets (\d+) bytes \d+ drop comment "\S+ (\S+)"/g)];
  return counters
    .filter(([, , name]) => name === label)
    .reduce((sum, [, packets]) => sum + Number(packets), 0);
}

export interface Attack {
  sources: readonly string[];
  targets: readonly string[];
  ping?: boolean;
}

/** How many packets from the tunnel went on to a pod, a host or elsewhere at the other one's nodes. */
export async function attack(foe: PlaneCluster, target: PlaneCluster, what: Attack): Promise<number> {
  const { gatewayNode: node } = foe;
  const { sources, targets, ping = true } = what;
  await node.shell('nft flush ruleset');
  await node.run(['wg', 'set', node.link, 'peer', target.side.publicKey, 'allowed-ips', '0.0.0.0/0']);
  const captures = await Promise.all(
    target.nodes.map(async (each) => each.captureTunnel(target.gatewayNode.link)),
  );
  const lines = sources.flatMap((source) =>
    targets.flatMap((address) => [
      `(echo x | socat -u - UDP-SENDTO:${address}:${UDP_PORT},bind=${source}) &`,
      `(timeout 1 socat -u TCP:${address}:${TCP_PORT},bind=${source},connect-timeout=1 - || true) 2>/dev/null &`,
      ...(ping ? [`(busybox ping -c1 -W1 -I ${source} ${address} || true) &`] : []),
    ]),
  );
  const addresses = [...new Set(sources)].map((source) => `ip addr add ${source}/32 dev lo`);
  const routes = [...new Set(targets)].map((address) => `ip route replace ${address}/32 dev ${node.link}`);
  const undo = [
    ...[...new Set(targets)].map((address) => `ip route del ${address}/32 dev ${node.link}`),
    ...[...new Set(sources)].map((source) => `ip addr del ${source}/32 dev lo`),
  ];
  await node.shell([...addresses, ...routes, ...lines, 'wait', ...undo].join('\n'));
  const counts = await Promise.all(captures.map(async (count) => count()));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Without the link that wireguard-go has made, which we must not remove, and without what changes by itself. */
export function settled(state: string): string {
  return state
    .split('\n')
    .filter((line) => !/: wgpl\w+: <|link\/none|fe80::|anycast|multicast|forever/.test(line))
    .join('\n')
    .replaceAll(/^\d+: /gm, '')
    .replaceAll(/ state \w+/g, '');
}
