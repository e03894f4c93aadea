/**
 * The lab of the end-to-end tests with faults in the underlying network: rome has one node; milan, on another
 * segment, has two, with a gateway on each. Packets of pods on the other node reach the active gateway by VXLAN.
 */
import { NODE_LINK } from '../../../../lab/underlay.ts';
import type { Node } from '../../../../lab/node.ts';
import { processesIn } from '../../../../lab/node-processes.ts';
import { bridgeAddress, segmentCidr } from '../../../../lab/network.ts';
import { signalProcess } from '../../../../lab/process.ts';
import { agentImageName } from '../../../../lab/images-agent.ts';
import type { Tunnel } from '../../../../src/api/tunnel.ts';
import type { Lease, Pod } from '../../../../src/api/wire.ts';
import { corePath, podPath } from '../../../support/e2e/api.ts';
import { ECHO_PORT, PodPlace } from './pod-place.ts';
import { Peers, type City } from '../../../support/e2e/peers.ts';
import { aPod, conditionOf, isReady } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';

const NETWORK = 'tributary-network';
const SYSTEM = 'tributary-system';
const GATEWAYS = 'app.kubernetes.io/instance=tributary-gateway';
const TUNNELS = '/apis/tributary.dev/v1alpha1/tunnels';
const TABLE = 'inet under-test';
/** Of the gateway. */
const OPS_PORT = 7480;
const ROUTER_SEGMENT: Readonly<Record<City, number>> = { rome: 0, milan: 1 };
/** Ports of the router, in the order of the lab's nodes. */
const ROUTER_PORTS = ['rome-1', 'milan-1', 'milan-2'];

export class Underlay {
  readonly peers: Peers;
  readonly #namespace: string;

  private constructor(peers: Peers, namespace: string) {
    this.peers = peers;
    this.#namespace = namespace;
  }

  /** Peers the clusters for a namespace, and waits until the tunnel is Ready on both sides. */
  static async open(namespace: string): Promise<Underlay> {
    // Both clusters are of one owner, and nothing of theirs overlaps.
    const peers = await Peers.open('--preshared-keys on --identity-views on');
    const underlay = new Underlay(peers, namespace);
    await underlay.setRouter('');
    for (const city of ['rome', 'milan'] as const) await underlay.#install(city);
    await peers.peer(namespace);
    for (const city of ['rome', 'milan'] as const) await underlay.untilReady(city);
    return underlay;
  }

  async close(): Promise<void> {
    await this.setRouter('');
    await this.peers.close();
  }

  async #install(city: City): Promise<void> {
    const image = `--image ${agentImageName}`;
    const gateway = `gateway ${image} --replicas ${city === 'milan' ? 2 : 1} --lease-seconds 2`;
    for (const what of [gateway, `node ${image}`]) {
      await this.peers.ask(
        `tributary manifests ${what} | kubectl --context ${city} apply --server-side --force-conflicts -f -`,
      );
    }
    for (const what of ['deployment/tributary-gateway', 'daemonset/tributary-node']) {
      const rollout = `kubectl --context ${city} -n ${NETWORK} rollout status ${what} --timeout=5s`;
      await until(
        `${what} of ${city} is rolled out`,
        async () => {
          await this.#withoutBackOff(city);
          return (await this.peers.run(rollout)).code === 0;
        },
        { seconds: 180, seen: async () => this.#containers(city) },
      );
    }
  }

  async #containers(city: City): Promise<object[]> {
    const pods = await this.peers.api(city).pods(NETWORK);
    return pods.map(({ metadata: { name }, status }) => ({ name, containers: status?.containerStatuses }));
  }

  node(name: string): Node {
    return this.peers.lab.cluster(name.replace(/-\d+$/, '')).node(name);
  }

  /** The other node of milan. */
  other(name: string): string {
    return name === 'milan-1' ? 'milan-2' : 'milan-1';
  }

  /** Name of the node whose gateway is active. */
  async gateway(city: City = 'milan'): Promise<string> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/tributary-gateway`;
    return (await this.peers.api(city).get<Lease>(path))?.spec?.holderIdentity ?? '';
  }

  async gatewayPod(node: string): Promise<Pod> {
    const pods = await this.peers.milan.pods(NETWORK, GATEWAYS);
    const found = pods.find(({ spec, metadata }) => spec?.nodeName === node && !metadata.deletionTimestamp);
    if (found === undefined) throw new Error(`no gateway on ${node}`);
    return found;
  }

  /** A pod of milan. */
  async removePod(pod: Pod): Promise<void> {
    await this.#remove('milan', pod);
  }

  async #remove(city: City, { metadata }: Pod): Promise<void> {
    await this.peers.api(city).remove(podPath(metadata.namespace ?? '', metadata.name));
  }

  /**
   * One gateway of milan is active and the other one is ready. The programs are asked directly, because the kubelet
   * learns it late.
   */
  async gatewaysReady(): Promise<void> {
    await this.#withoutBackOff('milan');
    const readiness = async (): Promise<string[]> =>
      Promise.all(
        this.peers.lab.cluster('milan').nodes.map(async ({ address }) => {
          const response = await fetch(`http://${address}:${OPS_PORT}/readyz`, {
            signal: AbortSignal.timeout(2_000),
          });
          return response.text();
        }),
      );
    await until(
      'both gateways of milan are ready',
      async () => (await readiness()).every((text) => text === 'ok\n'),
      { seconds: 90, seen: readiness },
    );
  }

  /**
   * A leader that loses its Lease ends, as it does on a machine that is busy for longer than the Lease lasts here. After many such
   * ends the kubelet delays the restart; a new pod need not wait.
   */
  async #withoutBackOff(city: City): Promise<void> {
    const pods = await this.peers.api(city).pods(NETWORK, GATEWAYS);
    const waits = ({ status }: Pod): boolean =>
      status?.containerStatuses?.some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff') ?? false;
    await Promise.all(pods.filter(waits).map(async (pod) => this.#remove(city, pod)));
  }

  /** Stops the gateway's program on the other node until the one on this node leads. */
  async makeActive(node: string): Promise<void> {
    await this.gatewaysReady();
    if ((await this.gateway()) === node) return;
    const halted = processesIn(this.node(this.other(node)).netns, /main\.js run gateway/);
    for (const id of halted) signalProcess(id, 'SIGSTOP');
    try {
      await until(`${node} leads`, async () => (await this.gateway()) === node);
    } finally {
      for (const id of halted) signalProcess(id, 'SIGCONT');
    }
    await this.untilFenced(this.other(node));
    await this.untilReady('milan');
    await this.gatewaysReady();
  }

  /** Nothing of a gateway is left in the node's kernel. */
  async untilFenced(node: string): Promise<void> {
    const left = async (): Promise<string> => {
      const routes = await this.node(node).exec(['ip', 'route', 'show', 'metric', '50']);
      const rules = await this.node(node).exec(['nft', 'list', 'tables']);
      return [...routes.split('\n'), ...rules.split('\n')]
        .filter((line) => /dev tributary\b|tributary.*gateway|gateway.*tributary/.test(line))
        .join('; ');
    };
    await until(`${node} is fenced`, async () => (await left()) === '', { seconds: 60, seen: left });
  }

  async tunnel(city: City): Promise<Tunnel> {
    const { id } = this.peers;
    const found = await this.peers
      .api(city)
      .get<Tunnel>(`${TUNNELS}/${id[city === 'rome' ? 'milan' : 'rome']}`);
    if (found === undefined) throw new Error(`${city} has no tunnel`);
    return found;
  }

  async untilTunnel(
    city: City,
    what: string,
    isSo: (tunnel: Tunnel) => boolean,
    seconds = 60,
  ): Promise<Tunnel> {
    return until(
      `tunnel of ${city} ${what}`,
      async () => {
        const tunnel = await this.tunnel(city);
        return isSo(tunnel) && tunnel;
      },
      { seconds, seen: async () => this.tunnel(city) },
    );
  }

  async untilReady(city: City): Promise<Tunnel> {
    const isReadyNow = ({ status }: Tunnel): boolean =>
      status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
    return this.untilTunnel(city, 'is Ready', isReadyNow, 90);
  }

  /** A pod in rome. */
  async atHome(name: string, script: string): Promise<PodPlace> {
    const { peers } = this;
    const pod = aPod(name, script, {
      labels: { app: name },
      spec: { nodeSelector: {}, tolerations: [], nodeName: 'rome-1' },
    });
    const made = await peers.runPod(this.#namespace, pod, isReady);
    return PodPlace.find(made, peers.lab.cluster('rome').nodes);
  }

  /** A pod of rome on that node of milan. */
  async offloaded(name: string, script: string, node: string): Promise<PodPlace> {
    const { peers } = this;
    const away = `/api/v1/nodes/${this.other(node)}`;
    await peers.milan.patch(away, { spec: { unschedulable: true } });
    try {
      const placed = aPod(name, script, {
        labels: { app: name },
        spec: { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } },
      });
      await peers.runPod(this.#namespace, placed, isReady);
    } finally {
      await peers.milan.patch(away, { spec: { unschedulable: null } });
    }
    const tenant = await peers.tenant(this.#namespace);
    const made = await peers.milan.pod(tenant, name);
    if (made === undefined || conditionOf(made, 'Ready') === undefined)
      throw new Error(`${name} is not in milan`);
    return PodPlace.find(made, peers.lab.cluster('milan').nodes);
  }

  /** A home Service of that pod, which milan also gets. */
  async service(name: string): Promise<void> {
    const spec = { selector: { app: name }, ports: [{ port: ECHO_PORT, protocol: 'UDP' }] };
    await this.peers.rome.create(corePath(this.#namespace, 'services'), { metadata: { name }, spec });
  }

  async serviceAddress(city: City, name: string): Promise<string> {
    const namespace = city === 'rome' ? this.#namespace : await this.peers.tenant(this.#namespace);
    return until(`Service ${name} in ${city}`, async () => {
      const service = await this.peers.api(city).get(corePath(namespace, 'services', name));
      return service?.spec?.['clusterIP'] as string | undefined;
    });
  }

  /** Puts chains into the router between the segments and flushes its connection table. */
  async setRouter(chains: string): Promise<void> {
    const stdin = `table ${TABLE}\ndelete table ${TABLE}\n${chains === '' ? '' : `table ${TABLE} {\n${chains}\n}\n`}`;
    await this.peers.lab.onRouter(['nft', '-f', '-'], { stdin });
    await this.forget();
  }

  /** Until the router is set again rome has another address, and nothing arrives at the old one. Resolves when milan has learnt it. */
  async moveRome(): Promise<void> {
    const old = this.node('rome-1').address;
    const fresh = old.replace(/\d+$/, '99');
    // Replies have the old address again when they are forwarded, so `strangers` are packets that belong to no connection.
    await this.setRouter(`
      chain arrival { type filter hook prerouting priority raw; ip daddr ${old} udp dport 51820 drop; }
      chain strangers { type filter hook forward priority filter; ip daddr ${fresh} drop; }
      chain source { type nat hook postrouting priority srcnat; ip saddr ${old} udp sport 51820 snat ip to ${fresh}:51820; }`);
    await until('milan has learnt it', async () => (await this.endpointOf('milan')) === `${fresh}:51820`);
  }

  /** Where that city sees the other one. */
  async endpointOf(city: City): Promise<string> {
    return (await this.tunnel(city)).status?.connection?.endpoint ?? '';
  }

  /** Packets that the router's own rules have counted since they were set. */
  async counted(): Promise<number> {
    const listed = await this.peers.lab.onRouter(['nft', 'list', 'table', ...TABLE.split(' ')]);
    return [...listed.matchAll(/counter packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** Flushes the connection table of the router. */
  async forget(): Promise<void> {
    await this.peers.lab.onRouter(['conntrack', '-F']);
  }

  segment(city: City): { cidr: string; router: string } {
    const segment = { ...this.peers.lab.spec.underlay, segment: ROUTER_SEGMENT[city] };
    return { cidr: segmentCidr(segment), router: bridgeAddress(segment) };
  }

  /** Sets the MTU of the router's own interfaces; larger packets are answered with "fragmentation needed". */
  async setRouterMtu(mtu: number): Promise<void> {
    for (const bridge of ['br0', 'br1'])
      await this.peers.lab.onRouter(['ip', 'link', 'set', bridge, 'mtu', String(mtu)]);
  }

  /** Makes all nodes forget what they have learnt about paths. */
  async forgetPathMtu(): Promise<void> {
    for (const node of this.#nodes()) await node.exec(['ip', 'route', 'flush', 'cache']);
  }

  /** Pulls a node's cable, or puts it back. */
  async setCable(node: string, state: 'up' | 'down'): Promise<void> {
    await this.peers.lab.onRouter(['ip', 'link', 'set', `node${ROUTER_PORTS.indexOf(node)}`, state]);
  }

  /** Turns off batching on nodes, because a rule of the router cannot see the size of single packets in a batch. */
  async withoutBatches(): Promise<void> {
    for (const node of this.#nodes()) await node.exec(['ip', 'link', 'set', NODE_LINK, 'gso_max_segs', '1']);
  }

  #nodes(): Node[] {
    return this.peers.lab.clusters.flatMap(({ nodes }) => nodes);
  }
}
