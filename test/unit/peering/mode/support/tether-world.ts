import {
  CLUSTER_MODE,
  type Mode,
  type ModePhase,
  type TetherSpec,
} from '../../../../../src/api/cluster-mode.ts';
import { foreignClusters, type ForeignClusterSpec } from '../../../../../src/api/foreign-cluster.ts';
import { pods } from '../../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../../src/api/sharing-policy.ts';
import { errorMessage } from '../../../../../src/lib/errors.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { whatIsTorn } from '../../../../support/peering/torn-mode.ts';
import { type SideName, TetherLink } from './tether-link.ts';
import { TetherSide } from './tether-side.ts';

/** In which everything has come to an end. */
const PATIENCE_MS = 600_000;
const KINDS = {
  modes: 'clustermodes.tributary.dev',
  clusters: 'foreignclusters.tributary.dev',
  policies: 'sharingpolicies.tributary.dev',
  offloadings: 'namespaceoffloadings.tributary.dev',
  virtualNodes: 'virtualnodes.tributary.dev',
};

/** A phase in which nothing is under way. */
export type Rest = Extract<ModePhase, 'Autonomous' | 'Tethered' | 'Refused'>;
export interface Kill {
  isDead: () => boolean;
  /** The write at which it was killed. */
  at: () => string;
  /** It is not killed any more. */
  disarm: () => void;
}

type Fact = readonly [what: string, is: unknown, should: unknown];

/** A device and a company, each over a simulated API server, with a link in this process between them. */
export class TetherWorld {
  readonly clock: FakeClock = new FakeClock();
  readonly link: TetherLink = new TetherLink(this.clock, (name) => this[name]);
  readonly device: TetherSide = new TetherSide('device', this.clock, this.link.of('device'));
  readonly company: TetherSide = new TetherSide('company', this.clock, this.link.of('company'));
  /** What the ClusterMode has said at some moment though it contradicts itself. */
  readonly torn: string[] = [];

  /** Both run and are linked; nothing is tethered. */
  async up(tethering: 'Allow' | 'Forbid' = 'Allow'): Promise<this> {
    const { device, company } = this;
    const spec = { peers: { anyone: true }, approval: 'Automatic', tethering };
    company.api.seed(sharingPolicies, { metadata: { name: 'devices' }, spec });
    const known = { clusterID: company.id, endpoint: 'company.example:7443' };
    device.api.seed(foreignClusters, { metadata: { name: 'company' }, spec: known });
    for (const side of [device, company]) {
      side.api.storage.subscribe(({ resource, current }) => {
        if (resource === KINDS.modes && current !== undefined) this.torn.push(...whatIsTorn(current));
      });
      await side.start();
    }
    this.link.up();
    const isLinked = (): boolean => device.foreign(company.id)?.status?.link?.connected === true;
    await this.until('both are autonomous', () => this.isAt('Autonomous') && isLinked());
    return this;
  }

  async down(): Promise<void> {
    for (const name of ['device', 'company'] as const) {
      this[name].kill();
      await this.#stop(name);
    }
  }

  /** As people do with kubectl. */
  want(tether: TetherSpec | undefined): void {
    this.#change('device', KINDS.modes, { name: CLUSTER_MODE, spec: tether === undefined ? {} : { tether } });
  }

  /** `tributary unpeer` at the company, or taking that back. */
  companyWants(wish: Required<ForeignClusterSpec>['outgoing']): void {
    const { metadata, spec } = this.company.foreign(this.device.id) ?? { metadata: { name: '' } };
    this.#change('company', KINDS.clusters, {
      name: metadata.name,
      spec: { ...spec, outgoing: wish, incoming: wish },
    });
  }

  /** A pod of a user that the scheduler of the device has bound to the node of the company. */
  forward(name: string): void {
    const [nodeName = ''] = this.device.mode?.status?.nodes ?? [];
    this.device.api.seed(pods, {
      metadata: { name, namespace: 'shop' },
      spec: { nodeName, containers: [{ name: 'main', image: 'example/none:1' }] },
      status: { phase: 'Running' },
    });
  }

  /** Of both sides. */
  inventories(): string[][] {
    return [this.device.inventory(), this.company.inventory()];
  }

  /** Whether the device is in that phase, and both sides have what belongs to it and nothing else. */
  isAt(phase: Rest): boolean {
    return this.missing(phase).length === 0;
  }

  async at(phase: Rest): Promise<void> {
    await this.until(
      `the device is ${phase}`,
      () => this.isAt(phase),
      () => this.missing(phase).join('; '),
    );
  }

  /** What is not as that phase has it. */
  missing(phase: Rest): string[] {
    const { device, company } = this;
    const { status, metadata } = device.mode ?? {};
    const count = phase === 'Tethered' ? 1 : 0;
    const mode: Mode = phase === 'Tethered' ? 'Tethered' : 'Autonomous';
    const of = (side: TetherSide, kind: string): number => side.api.storage.list(kind).length;
    const facts: Fact[] = [
      ['mode', status?.mode, mode],
      ['phase', status?.phase, phase],
      ['observed generation', status?.observedGeneration, metadata?.generation],
      ['mode of the company', company.mode?.status?.mode, 'Autonomous'],
      ['offloadings', of(device, KINDS.offloadings), count],
      ['nodes of the company', of(device, KINDS.virtualNodes), count],
      ['nodes of the device', of(company, KINDS.virtualNodes), count],
    ];
    // The policy and the notes of the peerings stay while a refusal may still become a consent.
    const settled = phase === 'Refused' ? [] : [['policies', of(device, KINDS.policies), count] as const];
    const peerings = phase === 'Refused' ? [] : this.#peerings(phase === 'Tethered' ? 'Established' : 'None');
    return [...facts, ...settled, ...peerings]
      .filter(([, is, should]) => is !== should)
      .map(([what, is, should]) => `${what}: ${String(is)}, not ${String(should)}`);
  }

  #peerings(should: string): Fact[] {
    const pairs = [
      [this.device, this.company.id],
      [this.company, this.device.id],
    ] as const;
    return pairs.flatMap(([side, other]) =>
      (['outgoing', 'incoming'] as const).map((direction): Fact => {
        const is = side.foreign(other)?.status?.[direction]?.phase ?? 'None';
        return [`${direction} at the ${side.name}`, is, should];
      }),
    );
  }

  async until(what: string, condition: () => boolean, seen: () => string = () => ''): Promise<void> {
    try {
      await this.clock.until(what, condition, PATIENCE_MS);
    } catch (cause) {
      const status = JSON.stringify(this.device.mode?.status);
      throw new Error(`${errorMessage(cause)}: ${seen()}\n${status}`, { cause });
    }
  }

  /** The `k`-th write of that side from now on is its last one: lost on its way, or stored with its answer lost. */
  killAt(name: SideName, k: number, when: 'before' | 'after'): Kill {
    let seen = 0;
    let last = '';
    const die = (): void => {
      this.link.down();
      this[name].kill();
    };
    const match = ({ method, path }: { method: string; path: string }): boolean => {
      if (method === 'GET' || ++seen !== k) return false;
      last = `${method} ${path}`;
      if (when === 'before') die();
      // The request is served before the next microtask.
      else queueMicrotask(die);
      return false;
    };
    const disarm = this[name].api.fault({ match, times: Infinity });
    return { isDead: () => last !== '', at: () => last, disarm };
  }

  /** Fresh processes instead of those, dead or alive. */
  async restart(...names: SideName[]): Promise<void> {
    for (const name of names) this[name].kill();
    for (const name of names) await this.#stop(name);
    for (const name of names) await this[name].start();
    this.link.up();
  }

  async #stop(name: SideName): Promise<void> {
    this.link.down();
    await this[name].stop();
  }

  #change(side: SideName, kind: string, { name, spec }: { name: string; spec: object }): void {
    const { storage } = this[side].api;
    const current = storage.get(kind, name);
    if (current === undefined) throw new Error(`there is no ${kind} ${name}`);
    const generation = (current.metadata.generation ?? 1) + 1;
    storage.update(kind, { ...current, metadata: { ...current.metadata, generation }, spec: { ...spec } });
  }
}
