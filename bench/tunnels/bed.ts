/**
 * The program of role `gateway` on a real API server, in a network namespace, joined with many peers. Each peer has a namespace, a
 * wireguard-go, rules and routes of its own, and what asks and answers in a tunnel at rest.
 */
import { join as path } from 'node:path';

import { compileProgram, imageEnvironment, imageFlags } from '../../lab/compiled-program.ts';
import { run } from '../../lab/run.ts';
import { tunnels } from '../../src/api/tunnel.ts';
import { listensTo } from '../../src/network/gateway/peers.ts';
import { present } from '../../src/lib/fields.ts';
import { awaited } from '../../test/support/eventually.ts';
import { PlaneLab } from '../../test/support/network/plane-lab.ts';
import { join as joinSides, PlaneSide } from '../../test/support/network/plane-tunnels.ts';
import { RolesLab, type RolesSide } from '../../test/integration/support/roles-lab.ts';
import type { ManyPeersBed } from '../idle/many-peers.ts';
import { lettersOf } from '../network/ways.ts';
import type { FarEnd } from './far-end.ts';

const HOME = 'home'.padEnd(26, 'a');
const LINK_MTU = 1420;
/** A program sees the links of the network namespace in which it mounts sysfs; the gateway reads there whether packets flow. */
const OWN_SYSFS = ['unshare', '--mount', 'sh', '-c', 'mount -t sysfs sysfs /sys && exec "$@"', 'sh'] as const;
/** All programs of all peers start meanwhile, on a few cores. */
const PATIENCE_MS = 300_000;

export class TunnelsBed implements ManyPeersBed {
  readonly #roles: RolesLab;
  readonly #plane: PlaneLab;
  readonly #home: RolesSide;
  readonly #side: PlaneSide;
  #peers = 0;

  private constructor(labs: { roles: RolesLab; plane: PlaneLab; home: RolesSide; side: PlaneSide }) {
    this.#roles = labs.roles;
    this.#plane = labs.plane;
    this.#home = labs.home;
    this.#side = labs.side;
  }

  /** `checkout`: whose program it is. */
  static async up(name: string, checkout?: string): Promise<TunnelsBed> {
    const roles = await RolesLab.up(name);
    let plane: PlaneLab | undefined;
    try {
      plane = await PlaneLab.up();
      await joinUnderlays(roles.underlay, plane.underlay);
      const home = await roles.side('home', 'h', 1);
      const main = compileProgram(path(roles.directory, 'agent'), present({ checkout }));
      const quiet = ['--lease-seconds', '10', '--log-level', 'info'];
      const variables = Object.entries(imageEnvironment(checkout)).map(
        ([variable, value]) => `${variable}=${value}`,
      );
      const program = [...OWN_SYSFS, 'env', ...variables, process.execPath, ...imageFlags(checkout), main];
      home.node(0).startProgram(program, 'gateway', ...quiet);
      const facts = await awaited('home has told of its gateway', async () => home.facts(), {
        deadlineMs: PATIENCE_MS,
      });
      if (facts === undefined) throw new Error('home has told nothing');
      const [endpoint = ''] = facts.endpoints;
      const side = new PlaneSide(HOME, home.network, facts.publicKey, endpoint);
      return new TunnelsBed({ roles, plane, home, side });
    } catch (error) {
      await plane?.down();
      await roles.down();
      throw error;
    }
  }

  /** The processes whose rest is measured. */
  get pids(): ManyPeersBed['pids'] {
    const node = this.#home.node(0);
    return { gateway: node.pid('gateway'), 'wireguard-go': node.pid('wireguard') };
  }

  /** Joins home with further peers until there are so many; returns when all tunnels are Ready at home. */
  async join(count: number): Promise<void> {
    while (this.#peers < count) await this.#addPeer();
    const names = this.#side.peers().map(({ tunnel }) => tunnel.metadata.name);
    for (const name of names) {
      await awaited(`the tunnel to ${name} is ready`, async () => this.#home.isReady(name), {
        deadlineMs: PATIENCE_MS,
      });
    }
  }

  async #addPeer(): Promise<void> {
    const number = ++this.#peers;
    const cluster = await this.#plane.cluster(`f${lettersOf(number)}`, {
      pods: `10.${100 + number}.0.0/16`,
      external: `10.69.${number}.0/24`,
    });
    const { side } = cluster;
    joinSides(this.#side, side);
    await cluster.apply();
    const end: FarEnd = {
      own: side.network.gatewayAddress,
      home: side.sees(this.#side, this.#side.network.gatewayAddress),
      endpoint: this.#side.endpoint,
      listens: listensTo(this.#side.publicKey, side.publicKey),
      mtu: LINK_MTU,
    };
    const program = path(import.meta.dirname, 'far-end.ts');
    cluster.gatewayNode.spawn([process.execPath, program, JSON.stringify(end)]);
    const tunnel = this.#side.peers().at(-1)?.tunnel;
    if (tunnel === undefined) throw new Error('no tunnel');
    const { name } = tunnel.metadata;
    const { spec, status } = tunnel;
    const { client } = this.#home;
    const kind = { apiVersion: 'tributary.dev/v1alpha1', kind: 'Tunnel' };
    await client.create(tunnels, { ...kind, metadata: { name }, spec });
    await client.patch(tunnels, { name }, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async down(): Promise<void> {
    await this.#plane.down();
    await this.#roles.down();
  }
}

/** The bridges in which both labs have their nodes become one network. */
async function joinUnderlays(one: string, other: string): Promise<void> {
  const port = 'joint';
  await run(['ip', '-n', one, 'link', 'add', port, 'type', 'veth', 'peer', 'name', port, 'netns', other]);
  for (const netns of [one, other])
    await run(['ip', '-n', netns, 'link', 'set', port, 'master', 'br0', 'up']);
  // Both bridges have the address of the same router.
  await run(['ip', '-n', other, 'addr', 'flush', 'dev', 'br0']);
}
