import { expect, test } from '@jest/globals';
import type { PeeringRequest } from '../../../../src/api/peering-request.ts';
import { leases } from '../../../../src/api/resources.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Fences } from '../../../../src/peering/lending/fences.ts';
import { FenceRenewal } from '../../../../src/peering/mode/renewal.ts';
import type { RenewParams, RenewResult } from '../../../../src/peering/protocol/documents.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { short } from '../../../support/long.ts';
import { fc } from '../../../support/property.ts';

/** A device and a company with clocks of their own, and a network between them that loses, delays and delivers late. */

const SECOND = 1000;
const TERMS = { afterSeconds: 10, stopSeconds: 6 };
/** Of the nodes of the company, on which its program runs in turn. */
const CLOCKS_APART_MS = 30 * SECOND;
const MARGIN_MS = CLOCKS_APART_MS + 2 * SECOND;
const DEVICE = 'device-id';

type Event = 'none' | 'cut' | 'heal' | 'late' | 'company restarts' | 'company moves' | 'device restarts';

class World {
  readonly api = new FakeApi({ clock: new FakeClock() });
  readonly client = this.api.client();
  readonly device = new FakeClock(Date.UTC(2031, 0, 1));
  /** All of them run at the same pace; they show other times. */
  company = new FakeClock();
  isCut = false;
  isLate = false;
  #companyMs = 0;
  #fences = this.#makeFences();
  #renewal = this.#makeRenewal();
  readonly #inFlight: (() => void)[] = [];
  /** The device was told that the company holds itself to the terms; the object in its cluster keeps that. */
  isAgreed = false;
  closedForMs: number | undefined;

  #makeFences(): Fences {
    const request = {
      metadata: { name: DEVICE, uid: 'u', resourceVersion: '1', creationTimestamp: '' },
      spec: { clusterID: DEVICE, namespaces: [], fence: TERMS },
      status: { phase: 'Established' },
    } satisfies PeeringRequest;
    return new Fences({
      client: this.client,
      clock: this.company,
      log: silentLogger,
      systemNamespace: 'system',
      requests: { get: () => request },
      changed: () => undefined,
    });
  }

  #makeRenewal(): FenceRenewal {
    const made: FenceRenewal = new FenceRenewal({
      clock: this.device,
      log: silentLogger,
      links: () => ({
        view: () => (this.isCut ? undefined : ({ connected: true } as never)),
        call: async (_id, _method, params) => this.#call(params as RenewParams),
      }),
      wanted: () => ({ clusterID: DEVICE, terms: TERMS, mayResume: !this.deviceMayRun }),
      changed: () => {
        this.isAgreed ||= made.agreed(DEVICE) !== undefined;
      },
    });
    return made;
  }

  /** A request that was sent arrives some time, also after a cut; an answer comes only where nothing is cut. */
  async #call(params: RenewParams): Promise<RenewResult> {
    if (this.isLate) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#inFlight.push(resolve);
      await promise;
    }
    const result = await this.#fences.renew(DEVICE, params, AbortSignal.timeout(60_000));
    if (this.isCut) throw new Error('the link has ended');
    return result;
  }

  get deviceMayRun(): boolean {
    return this.isAgreed && this.isCut && this.#renewal.stoppedInMs(TERMS) + MARGIN_MS <= 0;
  }

  get companyMayRun(): boolean {
    return this.closedForMs === undefined || this.closedForMs < TERMS.stopSeconds * SECOND;
  }

  async start(): Promise<void> {
    this.#renewal.start();
    await this.second();
  }

  async happens(event: Event): Promise<void> {
    if (event === 'cut') this.isCut = true;
    if (event === 'heal') this.isCut = false;
    if (event === 'late') this.isLate = !this.isLate;
    if (!this.isLate) for (const arrive of this.#inFlight.splice(0)) arrive();
    if (event.startsWith('company')) {
      const nextMs = event === 'company moves' ? CLOCKS_APART_MS - this.#companyMs : this.#companyMs;
      const now = this.company.now() + nextMs - this.#companyMs;
      this.#companyMs = nextMs;
      this.company = new FakeClock(now);
      this.#fences = this.#makeFences();
    }
    if (event === 'device restarts') {
      const stopping = this.#renewal.stop();
      for (const arrive of this.#inFlight.splice(0)) arrive();
      await stopping;
      this.#renewal = this.#makeRenewal();
      this.#renewal.start();
    }
  }

  async second(): Promise<void> {
    await this.company.advance(SECOND);
    await this.device.advance(SECOND);
    const isClosed = await this.#fences.isClosed(DEVICE, AbortSignal.timeout(60_000));
    this.closedForMs = isClosed ? (this.closedForMs ?? -SECOND) + SECOND : undefined;
  }

  async stop(): Promise<void> {
    this.isLate = false;
    await this.happens('heal');
    await this.#renewal.stop();
    await this.client.close();
    await this.api.stop();
  }
}

const events = fc.array(
  fc.record({
    event: fc.constantFrom<Event>(
      'none',
      'cut',
      'heal',
      'late',
      'company restarts',
      'company moves',
      'device restarts',
    ),
    seconds: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 5, max: 70 })),
  }),
  { minLength: 1, maxLength: 12 },
);

/** Resolves with the number of seconds in which the device may run them. */
async function lived(steps: readonly { event: Event; seconds: number }[]): Promise<number> {
  const world = new World();
  let ran = 0;
  try {
    await world.start();
    for (const event of steps.flatMap(({ event: first, seconds }) => [
      first,
      ...Array<Event>(seconds).fill('none'),
    ])) {
      if (event !== 'none') await world.happens(event);
      await world.second();
      ran += Number(world.deviceMayRun);
      expect(world.deviceMayRun && world.companyMayRun).toBe(false);
    }
    return ran;
  } finally {
    await world.stop();
  }
}

const LIVES = short('lives of a fence, with other faults each', { short: 150, long: 400 });

test('whatever is cut, delayed or restarted, with clocks 30 s apart, never may both run the pods', async () => {
  let ran = 0;
  const holds = fc.asyncProperty(events, async (steps) => {
    ran += await lived(steps);
  });
  await fc.assert(holds, { numRuns: LIVES });
  // Otherwise it would prove nothing.
  expect(ran).toBeGreaterThan(0);
});

test('a long cut lets the device run them, and contact gives them back', async () => {
  const world = new World();
  for (let second = 0; second < 10; second++) await (second === 0 ? world.start() : world.second());
  expect(world.isAgreed).toBe(true);
  const { items } = await world.client.list(leases);
  expect(items.map(({ metadata, spec }) => [metadata.name, spec?.leaseDurationSeconds])).toEqual([
    [`tributary-fence-${DEVICE}`, TERMS.afterSeconds],
  ]);
  await world.happens('cut');
  for (let second = 0; second < 70; second++) await world.second();
  expect([world.deviceMayRun, world.companyMayRun]).toEqual([true, false]);
  await world.happens('heal');
  for (let second = 0; second < 10; second++) await world.second();
  expect([world.deviceMayRun, world.companyMayRun]).toEqual([false, true]);
  await world.stop();
});
