/** A consumer, rome, and a provider, milan, whose role `cluster` is measured while the benchmark plays the kubelets of milan's nodes. */
import { join } from 'node:path';

import type { Lab } from '../../lab/lab.ts';
import { advertisements } from '../../src/api/advertisement.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { awaited } from '../../test/support/eventually.ts';
import { auditOf } from '../frame/audit.ts';
import { ownClient } from '../frame/own-client.ts';
import { probeModule } from '../frame/stall.ts';
import { PeeringBed } from '../peering/bed.ts';

const NAME = 'bench-shape';
const DEADLINE_MS = 120_000;
/** They would take nodes without Leases for lost, and are not needed once both have peered. */
const NOT_NEEDED = ['kwok', 'kube-scheduler', 'kube-controller-manager'];

const stallFileOf = (lab: Lab): string => join(lab.spec.dataDirectory, 'stall.json');

export class ShapeBed {
  readonly bed: PeeringBed;
  /** Of milan. */
  readonly client: HttpClient;
  /** What the watch of offers at home has brought. */
  readonly watched = { bytes: 0, offers: 0 };
  #newest = 0;
  readonly #rome: HttpClient;
  readonly #advertisements: Informer<KubeObject>;

  private constructor(bed: PeeringBed, client: HttpClient, rome: HttpClient) {
    this.bed = bed;
    this.client = client;
    this.#rome = rome;
    this.#advertisements = new Informer<KubeObject>({
      client: rome,
      type: advertisements,
      list: {},
      clock: systemClock,
      log: silentLogger,
      transform: (object) => {
        this.#see(object);
        return object;
      },
    });
  }

  static async up(nodeFlags: readonly string[], say: (line: string) => void): Promise<ShapeBed> {
    const bed = await PeeringBed.up(NAME, {
      checkout: undefined,
      nodeFlags,
      progress: say,
      audit: true,
      milan: (lab) => ({
        role: 'cluster',
        imports: [probeModule(stallFileOf(lab))],
        // It borrows nothing, so it never starts an agent.
        options: { 'agent-image': 'example.org/none:1', 'log-level': 'info' },
      }),
    });
    try {
      await bed.ask();
      const [milan, rome] = [
        await ownClient(bed.lab.cluster('milan')),
        await ownClient(bed.lab.cluster('rome')),
      ];
      const shape = new ShapeBed(bed, milan, rome);
      await shape.#advertisements.start(new AbortController().signal);
      await shape.offerHas('an offer that is accepted', (offer) => offer.status?.decision === 'Accepted');
      for (const daemon of NOT_NEEDED) await bed.lab.cluster('milan').daemon(daemon).kill();
      return shape;
    } catch (error) {
      await bed.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await this.#advertisements.stop();
    await Promise.all([this.client.close(), this.#rome.close()]);
    await this.bed.down();
  }

  /** Of milan's role `cluster`. */
  get pid(): number {
    return this.bed.pids[1] ?? 0;
  }

  get stallFile(): string {
    return stallFileOf(this.bed.lab);
  }

  #see(object: OfferState): void {
    this.watched.bytes += JSON.stringify(object).length;
    const { generation = 0 } = object.spec?.offer ?? {};
    if (generation > this.#newest) this.watched.offers++;
    this.#newest = Math.max(this.#newest, generation);
  }

  async nodesOffered(count: number): Promise<void> {
    await this.offerHas(`${count} nodes`, ({ spec }) => {
      const shapes = spec?.offer?.shapes ?? [];
      return shapes.reduce((sum, shape) => sum + shape.count, 0) >= count;
    });
  }

  async offerHas(what: string, isSo: (offer: OfferState) => boolean): Promise<void> {
    const look = async (): Promise<boolean> =>
      Promise.resolve([...this.#advertisements.list()].some((object) => isSo(object as OfferState)));
    await awaited(`rome's offer has ${what}`, look, {
      deadlineMs: DEADLINE_MS,
      rest: { least: 20, most: 250 },
    });
  }

  /** What milan's process has asked its API server for, by verb and resource. It uses the administrator's credential. */
  requestsBetween(fromMs: number, toMs: number): Map<string, number> {
    const sums = new Map<string, number>();
    for (const [user, counts] of auditOf(NAME, 'milan').between(fromMs, toMs)) {
      if (user.startsWith('system:') || user === 'kwok') continue;
      for (const [what, count] of counts) sums.set(what, (sums.get(what) ?? 0) + count);
    }
    return sums;
  }
}

interface OfferState extends KubeObject {
  readonly spec?: {
    readonly offer?: {
      readonly generation?: number;
      readonly shapes?: readonly { readonly count: number }[];
    };
  };
  readonly status?: { readonly decision?: string };
}
