import { describe, expect, test } from '@jest/globals';
import type { LabelSelector } from '../../../../src/api/label-selector.ts';
import type { NetworkPolicySpec, PolicyPeer, PolicyPort } from '../../../../src/api/network-policy.ts';
import { NO_NETWORK } from '../../../../src/provider/network-view.ts';
import { isInBlock } from '../../../../src/provider/reflect/policy-blocks.ts';
import { forgePolicySpec } from '../../../../src/provider/reflect/policy-rules.ts';
import { allows, type Party } from '../../../support/policy-model.ts';
import { type Chance, seeded } from '../../../support/seed.ts';
import {
  abroad,
  abroadParty,
  BODIES,
  type Body,
  context,
  isOfPods,
  open,
  tried,
} from '../support/policy-sides.ts';
import { FakeNetwork } from '../support/network.ts';

const DENY_ALL: NetworkPolicySpec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
describe('a policy over there is what it is at home', () => {
  test.each<[string, NetworkPolicySpec[]]>([
    ['default deny', [DENY_ALL]],
    [
      'default deny with exceptions by labels, by namespaces and by the name of a port',
      [
        DENY_ALL,
        {
          podSelector: { matchLabels: { app: 'db' } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 'http' }] }],
        },
        {
          podSelector: { matchLabels: { app: 'web' } },
          policyTypes: ['Egress'],
          egress: [
            { to: [{ podSelector: { matchLabels: { app: 'db' } } }], ports: [{ port: 'http' }] },
            { to: [{ namespaceSelector: { matchLabels: { team: 'research' } } }], ports: [{ port: 80 }] },
          ],
        },
        {
          podSelector: { matchLabels: { app: 'web' } },
          ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'sales' } }, podSelector: {} }] }],
        },
      ],
    ],
    [
      'a namespace that is not offloaded',
      [
        {
          podSelector: {},
          ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'research' } } }] }],
        },
      ],
    ],
    ['all namespaces', [{ podSelector: {}, egress: [{ to: [{ namespaceSelector: {} }] }] }]],
    [
      'a range of ports',
      [
        {
          podSelector: {},
          ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 8000, endPort: 9000 }] }],
        },
      ],
    ],
    [
      'an address',
      [
        {
          podSelector: {},
          egress: [{ to: [{ ipBlock: { cidr: '10.1.2.0/24', except: ['10.1.2.4/32'] } }] }],
        },
      ],
    ],
    [
      'a name that no port has',
      [{ podSelector: {}, egress: [{ to: [{ podSelector: {} }], ports: [{ port: 'none' }] }] }],
    ],
    [
      'a selector that finds nobody',
      [{ podSelector: {}, egress: [{ to: [{ podSelector: { matchLabels: { app: 'x' } } }] }] }],
    ],
  ])('%s', (_what, policies) => {
    const answers = tried(policies).filter(isOfPods);
    expect(open(answers, 'abroad')).toEqual(open(answers, 'home'));
    expect(answers.some((answer) => !answer.home)).toBe(true);
  });

  test('without a policy the isolation of the provider holds, and nothing else', () => {
    const answers = tried([]).filter(isOfPods);
    expect(open(answers, 'abroad')).toEqual(open(answers, 'home'));
  });

  test('a pod of which only one direction is spoken keeps the other', () => {
    const answers = tried([{ podSelector: { matchLabels: { app: 'web' } }, ingress: [] }]).filter(isOfPods);
    expect(open(answers, 'abroad')).toEqual(open(answers, 'home'));
  });
});

describe('labels that pods over there bear otherwise', () => {
  const deny: NetworkPolicySpec = { podSelector: {}, ingress: [] };
  const absent = { matchExpressions: [{ key: 'steers', operator: 'DoesNotExist' as const }] };

  test('a policy that selects by one only closes, and says so', () => {
    const policies = [deny, { podSelector: absent, ingress: [{}] }];
    const answers = tried(policies, [80]).filter(({ what }) => what.startsWith('web from'));
    expect(open(answers, 'home')).toEqual([]);
    expect(open(answers, 'abroad')).toEqual([]);
    expect(forgePolicySpec(policies[1] ?? {}, context).notes).toEqual([
      'it selects pods by the label steers, which pods over there do not bear as at home: it only closes',
    ]);
  });

  test('a rule that selects by one opens to pods elsewhere, by what they bear', () => {
    const policy = { podSelector: {}, ingress: [{ from: [{ podSelector: absent }] }] };
    const answers = tried([policy], [80]).filter(({ what }) => what.startsWith('db from'));
    expect(open(answers, 'abroad')).toContain('db from web-home:80');
    expect(open(answers, 'abroad')).not.toContain('db from web:80');
  });
});

describe('the outside', () => {
  const egress = (...to: PolicyPeer[]): NetworkPolicySpec => ({
    podSelector: {},
    policyTypes: ['Egress'],
    egress: [{ to }],
  });

  const notesOf = (policy: NetworkPolicySpec): string[] =>
    forgePolicySpec(policy, context).notes.map((note) => note.replace('egress rule 1: ', ''));
  const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'];

  test('all addresses are everything wherever one is', () => {
    const everywhere = [egress({ ipBlock: { cidr: '0.0.0.0/0' } }, { ipBlock: { cidr: '::/0' } })];
    const answers = tried(everywhere, [80]);
    expect(open(answers, 'home')).toContain('web to a network beside home:80');
    expect(open(answers, 'abroad').filter((what) => what.includes(' to '))).toEqual(
      open(answers, 'home').filter((what) => what.includes(' to ')),
    );
    expect(notesOf(everywhere[0] ?? {})).toEqual([]);
    const open0 = tried([{ podSelector: {}, policyTypes: ['Egress'], egress: [{}] }], [80]);
    expect(open(answers, 'abroad')).toEqual(open(open0, 'abroad'));
  });

  test('the Internet without private ranges is the same for both clusters', () => {
    const internet = egress({ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE } });
    const answers = tried([internet], [80]).filter(({ what }) => what.includes(' to '));
    expect(open(answers, 'abroad')).toEqual(open(answers, 'home'));
    expect(open(answers, 'home')).toContain('web to the Internet:80');
    expect(notesOf(internet)).toEqual([]);
  });

  test.each<[string, string[], string]>([
    [
      '0.0.0.0/0',
      ['10.0.0.0/8'],
      'of 0.0.0.0/0 what is in 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16 is closed, but for pods: over there it is another network',
    ],
    [
      '192.0.0.0/8',
      [],
      'of 192.0.0.0/8 what is in 192.168.0.0/16 is closed, but for pods: over there it is another network',
    ],
    ['10.0.0.0/8', [], 'of 10.0.0.0/8 only pods are open: over there the rest is another network'],
  ])('of a range that is narrowed it is told what is closed: %s but %j', (cidr, except, note) => {
    expect(notesOf(egress({ ipBlock: { cidr, except } }))).toEqual([note]);
  });

  test.each<[string, string[]]>([
    ['10.1.2.0/24', []],
    ['10.0.0.0/15', ['10.0.0.0/16']],
    ['198.51.100.0/24', []],
    ['100.64.0.0/16', []],
    ['10.96.0.10/32', []],
    ['2000::/3', []],
  ])('what is exact is not told: %s but %j', (cidr, except) => {
    expect(notesOf(egress({ ipBlock: { cidr, except } }))).toEqual([]);
  });

  test('an exception holds also where home is seen at public addresses', () => {
    const network = new FakeNetwork();
    network.set({ seenAs: [{ prefix: '10.1.0.0/16', as: '198.18.0.0/16' }] });
    const but = egress({ ipBlock: { cidr: '0.0.0.0/0', except: ['10.1.2.0/24'] } });
    const { to = [] } = forgePolicySpec(but, { ...context, network }).spec.egress?.[0] ?? {};
    const reached = to.filter(({ ipBlock }) => ipBlock !== undefined && isInBlock(ipBlock, '198.18.2.1'));
    expect(reached).toEqual([]);
  });

  test('where clusters see each other by both families, all addresses are those of both', () => {
    const network = new FakeNetwork();
    network.set({
      views: [
        { use: 'Pods', prefix: '10.0.0.0/16', as: '100.64.0.0/16' },
        { use: 'Pods', prefix: 'fd01::/64', as: 'fd02::/64' },
      ],
    });
    const notes = (...cidrs: string[]): string[] =>
      forgePolicySpec(egress(...cidrs.map((cidr) => ({ ipBlock: { cidr } }))), { ...context, network }).notes;
    expect(notes('0.0.0.0/0', '::/0')).toEqual([]);
    expect(notes('0.0.0.0/0')).toEqual([
      'egress rule 1: 0.0.0.0/0 covers pods over there in part: they are closed; select them by labels',
    ]);
  });

  test('without a network pods over there have no addresses that a range could have', () => {
    const { notes, spec } = forgePolicySpec(egress({ ipBlock: { cidr: '0.0.0.0/0' } }), {
      ...context,
      network: NO_NETWORK,
    });
    expect(notes).toEqual([
      'egress rule 1: without a network nobody knows which addresses of 0.0.0.0/0 pods over there have: they are closed; select them by labels',
    ]);
    expect(spec.egress?.[0]?.to).toEqual([{ clusterDNS: true }, { ipBlock: { cidr: '0.0.0.0/0' } }]);
  });

  test.each([
    [
      '10.200.0.0/16',
      "10.200.0.0/16 is not of this cluster's pods, nor outside: over there it is another network",
    ],
    [
      '172.30.0.11/32',
      "172.30.0.11/32 is no pod of this cluster, but a node, a ClusterIP or another machine: over there this address is another's",
    ],
    [
      '172.30.0.12/32',
      "172.30.0.12/32 is a node of this cluster, which pods over there do not reach: there this address is another's",
    ],
    [
      'fd00::/8',
      "fd00::/8 is a private range of IPv6, and over there this cluster's pods are seen by IPv4 only: there it is another network",
    ],
    ['100.64.1.0/24', '100.64.1.0/24 covers pods over there in part: they are closed; select them by labels'],
    ['none', 'none is closed: none cannot be read (the prefix length is missing)'],
  ])('what cannot be said of %s is closed, and told', (cidr, note) => {
    const policy = egress({ ipBlock: { cidr } });
    expect(forgePolicySpec(policy, context).spec.egress).toBeUndefined();
    expect(notesOf(policy)).toEqual([note]);
    expect(open(tried([policy]), 'abroad').filter((what) => what.includes(' to '))).toEqual([]);
  });

  test('an exception that cannot be read closes the range', () => {
    const policy = egress({ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.1/8'] } });
    expect(forgePolicySpec(policy, context).spec.egress).toBeUndefined();
    expect(notesOf(policy)).toEqual([
      expect.stringContaining('0.0.0.0/0 is closed: 10.0.0.1/8 cannot be read ('),
    ]);
  });

  test('of ClusterIPs of home only the DNS is open', () => {
    const policy = egress({ ipBlock: { cidr: '10.96.0.0/16' } });
    expect(forgePolicySpec(policy, context).spec.egress).toEqual([{ to: [{ clusterDNS: true }] }]);
    expect(notesOf(policy)).toEqual([
      '10.96.0.0/16 has ClusterIPs of this cluster: over there only its DNS is open; select the pods behind the others by labels',
    ]);
  });

  test('who may ask the DNS at home may ask the DNS over there, by the same protocols', () => {
    const dns = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } };
    const spec = (ports: PolicyPort[]): NetworkPolicySpec => ({
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [{ to: [dns], ports }],
    });
    const web = abroadParty(BODIES[0] as Body, [spec([])]);
    const resolver: Party = {
      address: '10.0.9.9',
      pod: { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
    };
    const asks = (ports: PolicyPort[], protocol: 'TCP' | 'UDP', port = 53): boolean =>
      allows(abroad([spec(ports)]), 'Egress', { subject: web, other: resolver, port, protocol });
    expect(asks([{ protocol: 'UDP', port: 53 }], 'UDP')).toBe(true);
    expect(asks([{ protocol: 'UDP', port: 53 }], 'TCP')).toBe(false);
    expect(asks([{ port: 443 }], 'TCP', 443)).toBe(false);
    expect(asks([{ protocol: 'UDP', port: 'dns' }], 'UDP')).toBe(false);
    expect(asks([{ port: 'dns' }], 'TCP')).toBe(true);
    expect(asks([{ protocol: 'UDP', port: 5353 }], 'UDP', 5353)).toBe(true);
    expect(asks([], 'TCP')).toBe(true);
    expect(asks([], 'TCP', 443)).toBe(false);
  });
});

const RUNS = 400;

const one = <T>(chance: Chance, all: readonly T[]): T => all[chance.below(all.length)] as T;
const some = <T>(chance: Chance, most: number, make: () => T): T[] =>
  Array.from({ length: chance.below(most + 1) }, make);

const CIDRS = [
  '0.0.0.0/0',
  '::/0',
  '10.0.0.0/8',
  '10.0.0.0/16',
  '10.1.0.0/16',
  '10.1.2.0/30',
  '100.64.0.0/10',
  '100.64.0.0/16',
  '100.80.0.0/16',
  '198.51.100.0/24',
];
const EXCEPTS = ['10.1.2.1/32', '100.64.1.2/32', '198.51.100.8/32', '100.80.3.0/24'];
const PORT_RULES: PolicyPort[] = [
  { port: 80 },
  { port: 'http' },
  { port: 'metrics' },
  { port: 8000, endPort: 9100 },
  { protocol: 'UDP', port: 53 },
  {},
];

const anySelector = (chance: Chance): LabelSelector =>
  one<LabelSelector>(chance, [
    {},
    { matchLabels: { app: one(chance, ['web', 'db', 'box']) } },
    {
      matchExpressions: [
        { key: one(chance, ['tier', 'steers', 'added']), operator: one(chance, ['Exists', 'DoesNotExist']) },
      ],
    },
  ]);

function anyPeer(chance: Chance): PolicyPeer {
  const except = chance.below(3) === 0 ? { except: [one(chance, EXCEPTS)] } : {};
  return one<PolicyPeer>(chance, [
    { podSelector: anySelector(chance) },
    { namespaceSelector: one(chance, [{}, { matchLabels: { team: one(chance, ['sales', 'research']) } }]) },
    { namespaceSelector: { matchLabels: { team: 'sales' } }, podSelector: anySelector(chance) },
    { ipBlock: { cidr: one(chance, CIDRS), ...except } },
  ]);
}

const anyPolicy = (chance: Chance): NetworkPolicySpec => ({
  podSelector: anySelector(chance),
  ...one<Pick<NetworkPolicySpec, 'policyTypes'>>(chance, [
    {},
    { policyTypes: ['Ingress'] },
    { policyTypes: ['Egress'] },
    { policyTypes: ['Ingress', 'Egress'] },
  ]),
  ingress: some(chance, 2, () => ({
    from: some(chance, 3, () => anyPeer(chance)),
    ports: some(chance, 2, () => one(chance, PORT_RULES)),
  })),
  egress: some(chance, 2, () => ({
    to: some(chance, 3, () => anyPeer(chance)),
    ports: some(chance, 2, () => one(chance, PORT_RULES)),
  })),
});

test(`of ${RUNS} sets of policies at random none is laxer over there`, async () => {
  await seeded(async (chance) => {
    let opened = 0;
    let stricter = 0;
    for (let run = 0; run < RUNS; run++) {
      const policies = some(chance, 3, () => anyPolicy(chance));
      const answers = tried(policies);
      const laxer = answers.filter((answer) => answer.abroad && !answer.home).map(({ what }) => what);
      expect({ policies, laxer }).toEqual({ policies, laxer: [] });
      opened += answers.filter((answer) => answer.abroad && isOfPods(answer)).length;
      stricter += answers.filter((answer) => answer.home && !answer.abroad && isOfPods(answer)).length;
    }
    // What is stricter between pods comes from ranges of addresses alone.
    expect(opened).toBeGreaterThan(stricter * 5);
  });
});
