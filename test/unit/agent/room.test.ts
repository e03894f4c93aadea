import { expect, test } from '@jest/globals';
import { addTo, amountOf, formatAmounts, parseAmounts, type Sums } from '../../../src/api/amounts.ts';
import type { DefaultRequests } from '../../../src/api/default-requests.ts';
import { podRequests } from '../../../src/api/pod-requests.ts';
import type { Container, Pod, PodSpec, ResourceList } from '../../../src/api/wire.ts';
import { costOf } from '../../../src/hosting/guests/cost.ts';
import { forgeLimits, forgeQuota } from '../../../src/hosting/tenants/quota.ts';
import { computeOffer } from '../../../src/peering/offer/compute.ts';
import { virtualNodePlans } from '../../../src/peering/offer/virtual-node-plans.ts';
import { forgePod } from '../../../src/provider/forge/pod.ts';
import { fc } from '../../support/property.ts';
import { anOffer } from '../peering/support/offers.ts';
import { aNode, lendingPolicy, stockOf } from '../peering/support/stock.ts';
import { CONTEXT, homePod } from '../provider/support/pods.ts';

/** Room is the same on both sides: what the scheduler at home places on a virtual node, the provider admits. */

interface Terms {
  lent: ResourceList;
  defaultRequests: DefaultRequests | undefined;
  podOverhead: ResourceList;
  shape: 'Aggregate' | 'PerNode';
}

/** What a real API server over there does with a pod: RuntimeClass, LimitRanger, ResourceQuota. */
class ProviderSide {
  readonly #hard: Sums;
  readonly #defaults: ResourceList;
  readonly #overhead: ResourceList;
  readonly #used: Sums = new Map();

  constructor({ lent, defaultRequests, podOverhead }: Terms) {
    this.#hard = parseAmounts(forgeQuota('tenant', {}, lent).spec?.hard ?? {});
    this.#defaults =
      forgeLimits('tenant', {}, lent, { defaultRequests }).spec.limits[0]?.defaultRequest ?? {};
    this.#overhead = podOverhead;
  }

  /** Throws where the pod is refused; returns what it costs. */
  admit(home: Pod): Sums {
    const pod = forgePod(home, CONTEXT) as Pod;
    const { spec = { containers: [] } } = pod;
    const filled = ({ resources, ...container }: Container): Container => ({
      ...container,
      resources: { ...resources, requests: { ...this.#defaults, ...resources?.requests } },
    });
    const containers = spec.containers.map(filled);
    const initContainers = spec.initContainers?.map(filled) ?? [];
    for (const { name, resources } of [...containers, ...initContainers]) {
      const missing = ['cpu', 'memory'].filter((resource) => resources?.requests?.[resource] === undefined);
      if (missing.length > 0) throw new Error(`must specify ${missing.join()} for ${name}`);
    }
    const admitted = { ...pod, spec: { ...spec, containers, initContainers, overhead: this.#overhead } };
    refuseAboveWhole(admitted.spec);
    const cost = costOf(admitted);
    for (const [resource, milli] of cost) {
      const key = resource === 'pods' ? 'pods' : `requests.${resource}`;
      const most = this.#hard.get(key);
      const used = amountOf(this.#used, resource);
      if (most !== undefined && used + milli > most)
        throw new Error(`exceeded quota: ${key}, used ${used}, requested ${milli}, limited ${most}`);
    }
    addTo(this.#used, cost);
    return cost;
  }

  release(cost: Sums): void {
    addTo(this.#used, cost, -1n);
  }
}

/** Validation of a pod that has requests as a whole (KEP-2837). */
function refuseAboveWhole({ containers, resources }: PodSpec): void {
  for (const [name, whole] of parseAmounts(resources?.requests ?? {})) {
    const sum = containers.reduce(
      (total, one) => total + amountOf(parseAmounts(one.resources?.requests ?? {}), name),
      0n,
    );
    if (sum > whole) throw new Error(`containers request ${sum} of ${name}, the pod as a whole ${whole}`);
  }
}

/** As NodeResourcesFit: the first Node with room. */
class HomeScheduler {
  readonly #nodes: { free: Sums; pods: Map<Pod, Sums> }[];

  constructor(nodes: readonly ResourceList[]) {
    this.#nodes = nodes.map((resources) => ({ free: parseAmounts(resources), pods: new Map() }));
  }

  bind(pod: Pod): boolean {
    const cost = podRequests(pod);
    const node = this.#nodes.find(({ free }) =>
      [...cost].every(([resource, milli]) => milli <= amountOf(free, resource)),
    );
    if (node === undefined) return false;
    addTo(node.free, cost, -1n);
    node.pods.set(pod, cost);
    return true;
  }

  remove(pod: Pod): void {
    for (const { free, pods } of this.#nodes) {
      addTo(free, pods.get(pod) ?? []);
      pods.delete(pod);
    }
  }
}

function nodesOf({ lent, defaultRequests, podOverhead, shape }: Terms): ResourceList[] {
  const stock = stockOf([aNode('a', { allocatable: lent })], []);
  const policy = lendingPolicy({ ...(defaultRequests && { defaultRequests }) });
  const terms = computeOffer(stock, policy, { consumer: 'x', promised: new Map(), podOverhead });
  const half = { count: 1, architecture: 'amd64', operatingSystem: 'linux', resources: lent };
  const offer = anOffer({ ...terms, resources: lent, shapes: [half, { ...half, labels: { zone: 'b' } }] });
  return virtualNodePlans(offer, lent, shape).map(({ resources }) => resources);
}

const amount = (resource: string, most: number): fc.Arbitrary<string> =>
  fc.integer({ min: 0, max: most }).map((n) => (resource === 'cpu' ? `${n}m` : `${n}Mi`));
const some = (cpu: number, memory: number): fc.Arbitrary<ResourceList> =>
  fc
    .record(
      {
        cpu: amount('cpu', cpu),
        memory: amount('memory', memory),
        'ephemeral-storage': amount('ephemeral-storage', memory),
      },
      { requiredKeys: [] },
    )
    .map((list) => formatAmounts(parseAmounts(list)));

const terms: fc.Arbitrary<Terms> = fc.record({
  lent: fc
    .tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 64 }), fc.integer({ min: 0, max: 40 }))
    .map(([cpu, memory, pods]) => ({
      cpu: `${cpu * 10}m`,
      memory: `${memory * 128}Mi`,
      pods: String(pods),
      'ephemeral-storage': `${memory * 256}Mi`,
    })),
  defaultRequests: fc.option(some(200, 200), { nil: undefined }),
  podOverhead: fc.oneof(fc.constant({}), some(250, 160)),
  shape: fc.constantFrom('Aggregate', 'PerNode'),
});

const container = (name: string): fc.Arbitrary<Container> =>
  fc.record({
    name: fc.constant(name),
    image: fc.constant('web:1'),
    resources: fc.oneof(
      fc.constant({}),
      some(300, 300).map((requests) => ({ requests })),
      // Defaulting at home makes requests of them.
      some(300, 300).map((limits) => ({ limits, requests: limits })),
    ),
  });
const several = (name: string, least: number): fc.Arbitrary<Container[]> =>
  fc
    .integer({ min: least, max: 3 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => container(`${name}${i}`))));

const pod: fc.Arbitrary<Pod> = fc
  .record({
    containers: several('main', 1),
    initContainers: several('init', 0).chain((all) =>
      fc
        .array(fc.boolean(), { minLength: all.length, maxLength: all.length })
        .map((sidecars) =>
          all.map((one, i): Container => (sidecars[i] ? { ...one, restartPolicy: 'Always' } : one)),
        ),
    ),
    overhead: fc.option(some(100, 100), { nil: undefined }),
    whole: fc.option(fc.integer({ min: 0, max: 500 }), { nil: undefined, freq: 3 }),
  })
  .map(({ containers, initContainers, overhead, whole }) => {
    const asked = containers.reduce(
      (sum, one) => sum + amountOf(parseAmounts(one.resources?.requests ?? {}), 'cpu'),
      0n,
    );
    const spec: Partial<PodSpec> = {
      containers,
      initContainers,
      ...(overhead && { overhead }),
      // Home has let it in, so it is not below the sum of its containers.
      ...(whole !== undefined && { resources: { requests: { cpu: `${asked + BigInt(whole)}m` } } }),
    };
    return homePod({ spec });
  });

/** Pods that come, and places in the list of those that are there at which one goes. */
const orders = fc.array(fc.oneof({ weight: 4, arbitrary: pod }, fc.nat()), {
  minLength: 10,
  maxLength: 60,
  size: 'max',
});

test('whatever the scheduler at home places on virtual nodes, quota and LimitRange of the provider admit', () => {
  let placed = 0;
  fc.assert(
    fc.property(terms, orders, (agreed, order) => {
      const home = new HomeScheduler(nodesOf(agreed));
      const provider = new ProviderSide(agreed);
      const running: { pod: Pod; cost: Sums }[] = [];
      for (const step of order) {
        if (typeof step === 'number') {
          const [gone] = running.splice(step % Math.max(1, running.length), 1);
          if (gone === undefined) continue;
          provider.release(gone.cost);
          home.remove(gone.pod);
        } else if (home.bind(step)) {
          running.push({ pod: step, cost: provider.admit(step) });
          placed++;
        }
      }
    }),
    { numRuns: 400 },
  );
  // Else nothing would have been tried.
  expect(placed).toBeGreaterThan(1000);
});

test.each([
  ['Aggregate', undefined, 110],
  ['PerNode', undefined, 110],
  ['Aggregate', { cpu: '10m', memory: '16Mi' }, 110],
] as const)('as many pods without requests as there are places: %s, %j', (shape, defaultRequests, count) => {
  const lent = { cpu: '3200m', memory: '8Gi', pods: '110', 'ephemeral-storage': '10Gi' };
  const agreed: Terms = { lent, defaultRequests, podOverhead: {}, shape };
  const home = new HomeScheduler(nodesOf(agreed));
  const provider = new ProviderSide(agreed);
  let bound = 0;
  for (let n = 0; n < 200; n++) {
    const bare = homePod();
    if (!home.bind(bare)) continue;
    provider.admit(bare);
    bound++;
  }
  expect(bound).toBe(count);
});
