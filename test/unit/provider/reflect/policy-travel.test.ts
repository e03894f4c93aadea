import { describe, expect, test } from '@jest/globals';
import type { LabelSelector } from '../../../../src/api/label-selector.ts';
import type { NetworkPolicySpec, PolicyPeer, PolicyPort } from '../../../../src/api/network-policy.ts';
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

  test('is the same for both clusters; a private network beside home is another one over there', () => {
    const everywhere = [egress({ ipBlock: { cidr: '0.0.0.0/0' } })];
    const answers = tried(everywhere, [80]).filter(({ what }) => what.startsWith('web to'));
    expect(open(answers, 'home')).toContain('web to a network beside home:80');
    expect(open(answers, 'abroad')).toEqual(
      open(answers, 'home').filter((what) => what !== 'web to a network beside home:80'),
    );
    expect(forgePolicySpec(everywhere[0] ?? {}, context).notes).toEqual([]);
  });

  test.each([
    [
      '10.200.0.0/16',
      "egress rule 1: 10.200.0.0/16 is not of this cluster's pods, nor outside: over there it is another network",
    ],
    [
      '100.64.1.0/24',
      'egress rule 1: 100.64.1.0/24 covers pods over there in part: they are closed; select them by labels',
    ],
    ['none', 'egress rule 1: none cannot be read'],
  ])('what cannot be said of %s is closed, and told', (cidr, note) => {
    const policy = egress({ ipBlock: { cidr } });
    expect(forgePolicySpec(policy, context)).toMatchObject({
      spec: { policyTypes: ['Egress'] },
      notes: [note],
    });
    expect(open(tried([policy]), 'abroad').filter((what) => what.includes(' to '))).toEqual([]);
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
