import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type GuestNetworkPolicy, guestNetworkPolicies } from '../../../../src/api/guest-network-policy.ts';
import { ANNOTATION_REFLECT } from '../../../../src/api/names.ts';
import type { NetworkPolicySpec } from '../../../../src/api/network-policy.ts';
import type { ReflectionRule } from '../../../../src/api/reflection.ts';
import { namespaces, networkPolicies, pods } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { FakeNetwork } from '../support/network.ts';
import { World } from '../support/world.ts';

/** NetworkPolicies of home, over there: nothing runs that they do not close yet. */

const PLURAL = 'guestnetworkpolicies.tributary.dev';
const POLICIES = 'networkpolicies.networking.k8s.io';
const MARK = 'tributary.dev/ingress-policy';
let world: World;
let network: FakeNetwork;

async function up(types = [guestNetworkPolicies]): Promise<void> {
  world = await new World({ types }).up();
  world.network = network = new FakeNetwork();
}
beforeEach(async () => up());
afterEach(async () => world.down());

const policy = (name: string, spec: NetworkPolicySpec = { podSelector: {}, ingress: [] }): void =>
  void world.home.seed(networkPolicies, { metadata: { namespace: 'shop', name, generation: 1 }, spec });
const copy = (name = 'deny'): GuestNetworkPolicy | undefined =>
  world.foreign.storage.get(PLURAL, `tenant/${name}`) as GuestNetworkPolicy | undefined;
/** As the provider does. */
function putInForce(name = 'deny', closed?: string[]): void {
  const found = copy(name);
  if (found === undefined) throw new Error(`no copy of ${name}`);
  const status = { observedGeneration: found.metadata.generation ?? 1, ...(closed && { closed }) };
  world.foreign.storage.update(PLURAL, { ...found, status } as never);
}
const untilCopied = async (name = 'deny'): Promise<void> =>
  world.until(`${name} is over there`, () => copy(name) !== undefined);
const marks = (name: string): unknown => world.body(name)?.metadata.labels?.[MARK];
const virtualNode = (): VirtualNode =>
  world.home.storage.get('virtualnodes.tributary.dev', 'rome') as unknown as VirtualNode;
function rule(policy: ReflectionRule['policy'], drop?: string[]): void {
  const node = virtualNode();
  const reflection = [
    { group: 'networking.k8s.io', resource: 'networkpolicies', policy, ...(drop && { drop }) },
  ];
  const mapping = { homeNamespace: 'shop', tenantNamespace: 'tenant', reflection };
  world.home.storage.update('virtualnodes.tributary.dev', {
    ...node,
    spec: { ...node.spec, namespaces: [mapping] },
  } as never);
}

describe('a pod', () => {
  test('waits until the policies that select it are in force, says so, and then obeys them', async () => {
    policy('deny');
    world.addPod('web');
    await world.start();
    await untilCopied();
    await world.until('the pod says what it waits for', () =>
      JSON.stringify(world.status('web')).includes('NetworkPolicy \\"deny\\" selects the pod'),
    );
    expect(world.body('web')).toBeUndefined();
    putInForce();
    await world.until('the pod is made', () => world.body('web') !== undefined);
    expect(marks('web')).toBe('true');
    expect(world.events).toContain(
      'NetworkPolicyNotInForce: NetworkPolicy "deny" selects the pod, and is not in force in the foreign cluster',
    );
  });

  test('that no policy selects does not wait', async () => {
    policy('deny', { podSelector: { matchLabels: { app: 'db' } }, ingress: [] });
    world.addPod('web');
    await world.start();
    await world.until('the pod is made', () => world.body('web') !== undefined);
    expect(marks('web')).toBeUndefined();
  });

  test('that runs obeys a policy that comes when it is in force, and no longer one that has gone', async () => {
    world.addPod('web');
    await world.start();
    await world.until('the pod is made', () => world.body('web') !== undefined);
    const uid = world.body('web')?.metadata.uid;
    policy('deny');
    await untilCopied();
    await world.until('the policy is seen', () => virtualNode().status !== undefined);
    expect(marks('web')).toBeUndefined();
    putInForce();
    await world.until('it obeys', () => marks('web') === 'true');
    world.home.storage.remove(POLICIES, 'shop/deny');
    await world.until('it does not any more', () => marks('web') === undefined);
    await world.until('the copy has gone', () => copy() === undefined);
    expect(world.body('web')?.metadata.uid).toBe(uid);
  });

  test('keeps what it obeys while a new agent has not read the policies yet', async () => {
    policy('deny');
    const agent = await world.start();
    await untilCopied();
    putInForce();
    world.addPod('web');
    await world.until('the pod is made', () => world.body('web') !== undefined);
    const writes = world.recordWrites();
    await world.replace(agent);
    world.addPod('next');
    await world.until('the new agent works', () => world.body('next') !== undefined);
    expect(marks('next')).toBe('true');
    expect(writes().filter((line) => line.startsWith('PATCH') && line.includes('/pods/web'))).toEqual([]);
  });

  test('waits for a changed policy, too', async () => {
    policy('deny');
    await world.start();
    await untilCopied();
    putInForce();
    const changed = world.home.storage.get(POLICIES, 'shop/deny');
    world.home.storage.update(POLICIES, {
      ...changed,
      metadata: { ...changed?.metadata, generation: 2 },
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: '198.51.100.0/24' } }] }] },
    } as never);
    world.addPod('web');
    await world.until('the copy has changed', () => copy()?.spec.ingress !== undefined);
    expect(world.body('web')).toBeUndefined();
    putInForce();
    await world.until('the pod is made', () => world.body('web') !== undefined);
  });

  test('does not wait where the rules of its namespace leave policies at home', async () => {
    policy('deny');
    world.addPod('web');
    await world.start();
    await untilCopied();
    rule('None');
    await world.until('the pod is made', () => world.body('web') !== undefined);
    await world.until('the copy has gone', () => copy() === undefined);
    expect(marks('web')).toBeUndefined();
  });

  test('is not made where the provider knows no policies of its guests, and says why', async () => {
    await world.down();
    await up([]);
    policy('deny');
    world.addPod('web');
    await world.start();
    await world.until('the pod says so', () =>
      JSON.stringify(world.status('web') ?? {}).includes('not in force'),
    );
    await world.until('people are told', () =>
      world.events.some((event) =>
        event.startsWith('KindNotServed: the foreign cluster does not take networkpolicies'),
      ),
    );
    expect(world.body('web')).toBeUndefined();
    rule('None');
    await world.until('the pod is made', () => world.body('web') !== undefined);
  });
});

describe('a policy', () => {
  test('that keeps guests apart here stays here; what the home of guests says of them goes along', async () => {
    const made = (name: string, labels: Record<string, string>): void =>
      void world.home.seed(networkPolicies, {
        metadata: {
          namespace: 'shop',
          name,
          generation: 1,
          labels: { 'tributary.dev/peer': 'rome', ...labels },
        },
        spec: { podSelector: {} },
      });
    made('tributary', {});
    made('tributary-guest-web', { 'tributary.dev/guest-network-policy': 'web' });
    world.addPod('web');
    await world.start();
    await untilCopied('tributary-guest-web');
    putInForce('tributary-guest-web');
    await world.until('the pod is made', () => world.body('web') !== undefined);
    expect(copy('tributary')).toBeUndefined();
  });

  test('travels as a whole, whatever a rule drops', async () => {
    policy('deny', { podSelector: { matchLabels: { app: 'db' } }, ingress: [] });
    rule('All', ['spec.podSelector', 'spec..x']);
    await world.start();
    await untilCopied();
    expect(copy()?.spec.podSelector).toEqual({ matchLabels: { app: 'db' } });
    await world.until('it is told', () =>
      world.events.some((event) => event.includes('`drop` has no effect')),
    );
  });

  test('whose own word about travelling is ignored travels, is told so, and counts as no stricter', async () => {
    const metadata = {
      namespace: 'shop',
      name: 'deny',
      generation: 1,
      annotations: { [ANNOTATION_REFLECT]: 'no' },
    };
    world.home.seed(networkPolicies, { metadata, spec: { podSelector: {}, ingress: [] } });
    await world.start();
    await untilCopied();
    putInForce();
    world.addPod('web');
    await world.until('the pod is made', () => world.body('web') !== undefined);
    const told = world.events.filter((event) => event.startsWith('ReflectIgnored'));
    expect(told).toEqual([expect.stringContaining('it says "no"')]);
    expect(virtualNode().status?.stricterPolicies).toBeUndefined();
  });

  test('of which the provider tells nonsense harms nobody', async () => {
    policy('deny');
    await world.start();
    await untilCopied();
    putInForce('deny', 'all of it' as never);
    world.addPod('web');
    await world.until('the pod is made', () => world.body('web') !== undefined);
    expect(virtualNode().status?.stricterPolicies).toBeUndefined();
  });

  test('follows the pods that it selects, wherever they are, by the addresses that the foreign cluster sees', async () => {
    world.home.seed(namespaces, { metadata: { name: 'lab', labels: { team: 'research' } } });
    const seed = (name: string, ip: string): void =>
      void world.home.seed(pods, {
        metadata: { namespace: 'lab', name },
        spec: { nodeName: 'node-1', containers: [] },
        status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
      });
    seed('one', '10.1.0.4');
    policy('deny', {
      podSelector: {},
      ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'research' } } }] }],
    });
    await world.start();
    const blocks = (): unknown =>
      copy()
        ?.spec.ingress?.[0]?.from?.flatMap(({ ipBlock }) => ipBlock?.cidr ?? [])
        .join();
    await world.until('the pod may come in', () => blocks() === '100.99.0.4/32');
    seed('two', '10.1.0.5');
    await world.until('both may', () => blocks() === '100.99.0.4/31');
    world.home.storage.remove('pods', 'lab/one');
    await world.until('the other may', () => blocks() === '100.99.0.5/32');
    network.set({ seenAs: [{ prefix: '10.1.0.0/16', as: '100.77.0.0/16' }] });
    await world.until('by another address', () => blocks() === '100.77.0.5/32');
  });

  test('that is stricter over there is named, with the cause, and no longer when it is not', async () => {
    policy('deny', {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [{ to: [{ ipBlock: { cidr: '192.168.7.0/24' } }] }],
    });
    await world.start();
    await untilCopied();
    putInForce('deny', ['egress rule 2: 198.51.100.0/24 is closed to pods of peers']);
    const said = (): string => JSON.stringify(virtualNode().status?.stricterPolicies ?? []);
    await world.until('the VirtualNode names it', () => said().includes('the provider: egress rule 2'));
    expect(virtualNode().status?.stricterPolicies).toEqual([
      {
        homeNamespace: 'shop',
        policy: 'deny',
        causes: [
          "egress rule 1: 192.168.7.0/24 is not of this cluster's pods, nor outside: over there it is another network",
          'the provider: egress rule 2: 198.51.100.0/24 is closed to pods of peers',
        ],
      },
    ]);
    world.home.storage.remove(POLICIES, 'shop/deny');
    await world.until('nothing is stricter', () => said() === '[]');
  });

  test('that names a node of home says so, where pods of home are known', async () => {
    world.home.seed(pods, {
      metadata: { namespace: 'lab', name: 'one' },
      spec: { nodeName: 'node-1', containers: [] },
      status: { phase: 'Running', podIP: '10.1.0.4', hostIPs: [{ ip: '172.30.0.11' }] },
    });
    policy('deny', {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [{ to: [{ namespaceSelector: {} }, { ipBlock: { cidr: '172.30.0.11/32' } }] }],
    });
    await world.start();
    await world.until('it is named', () => virtualNode().status?.stricterPolicies !== undefined);
    expect(virtualNode().status?.stricterPolicies?.[0]?.causes).toEqual([
      "egress rule 1: 172.30.0.11/32 is a node of this cluster, which pods over there do not reach: there this address is another's",
    ]);
  });

  test('of which much is stricter is named with every cause, and the event says of which cluster it speaks', async () => {
    const rules = (count: number): NonNullable<NetworkPolicySpec['egress']> =>
      Array.from({ length: count }, (_, at) => ({ to: [{ ipBlock: { cidr: `192.168.${at}.0/24` } }] }));
    policy('deny', { podSelector: {}, policyTypes: ['Egress'], egress: rules(5) });
    await world.start();
    const causes = (): string[] => virtualNode().status?.stricterPolicies?.[0]?.causes ?? [];
    await world.until('all are named', () => causes().length === 5);
    expect(world.events).toContain(
      "PolicyStricterAbroad: for pods in rome: egress rule 1: 192.168.0.0/24 is not of this cluster's pods, nor outside: " +
        'over there it is another network; and 4 more, in status.stricterPolicies of VirtualNode rome',
    );
    const changed = world.home.storage.get(POLICIES, 'shop/deny');
    const spec = { podSelector: {}, policyTypes: ['Egress'], egress: rules(250) };
    world.home.storage.update(POLICIES, { ...changed, spec } as never);
    await world.until('as many as there is room for', () => causes().length === 32);
    expect(causes().at(-1)).toBe('and 219 more');
    expect(causes().join('').length).toBeLessThanOrEqual(4096);
  });
});
