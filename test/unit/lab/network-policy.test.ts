import { describe, expect, test } from '@jest/globals';

import { compile } from '../../../lab/network-policy/compile.ts';
import { selects, type NetworkPolicy, type Pod, type World } from '../../../lab/network-policy/model.ts';

function pod(namespace: string, app: string, podIP: string, spec: Partial<Pod['spec']> = {}): Pod {
  const containers = [{ ports: [{ name: 'http', containerPort: 8080 }] }];
  return {
    metadata: { namespace, labels: { app } },
    spec: { nodeName: 'n-1', containers, ...spec },
    status: { phase: 'Running', podIP },
  };
}

const pods = [
  pod('a', 'web', '10.0.0.1'),
  pod('a', 'client', '10.0.0.2'),
  pod('b', 'client', '10.0.0.3', { nodeName: 'n-2' }),
];
const namespaces = [
  { metadata: { name: 'a', labels: { peer: 'rome' } } },
  { metadata: { name: 'b', labels: { peer: 'milan' } } },
];
const world = (...specs: NetworkPolicy['spec'][]): World => ({
  pods,
  namespaces,
  policies: specs.map((spec) => ({ metadata: { namespace: 'a' }, spec })),
});
/** Only the rules of the pods' own chains. */
const rules = (spec: NetworkPolicy['spec']): string[] =>
  compile(world(spec), 'n-1')
    .split('chain forward')[0]
    ?.split('\n')
    .map((line) => line.trim())
    .filter((line) => /(return|drop);$/.test(line)) ?? [];
const web = { matchLabels: { app: 'web' } };

describe('compile', () => {
  test('without a policy there is nothing but the chain', () => {
    const text = compile(world(), 'n-1');
    expect(text).toContain('delete table ip lab-network-policy');
    expect(text).not.toContain('jump');
  });

  test('a policy that opens nothing drops what comes in, for its pods on this node', () => {
    const text = compile(world({ podSelector: {} }), 'n-1');
    expect(text).toContain('ip daddr 10.0.0.1 jump pod-0;');
    expect(text).toContain('ip daddr 10.0.0.2 jump pod-1;');
    expect(text).not.toContain('10.0.0.3');
    expect(text).not.toContain('saddr');
    expect(text.match(/drop;/g)).toHaveLength(2);
  });

  test.each<[string, NonNullable<NetworkPolicy['spec']['ingress']>[number], string[]]>([
    ['everybody', {}, ['return;']],
    [
      'pods of the same namespace',
      { from: [{ podSelector: {} }] },
      ['ip saddr 10.0.0.1 return;', 'ip saddr 10.0.0.2 return;'],
    ],
    [
      'pods of other namespaces',
      { from: [{ namespaceSelector: { matchLabels: { peer: 'milan' } } }] },
      ['ip saddr 10.0.0.3 return;'],
    ],
    ['a port by its number', { ports: [{ port: 80 }] }, ['tcp dport 80 return;']],
    [
      'a range of ports',
      { ports: [{ protocol: 'UDP', port: 80, endPort: 90 }] },
      ['udp dport 80-90 return;'],
    ],
    ['a port by its name', { ports: [{ port: 'http' }] }, ['tcp dport 8080 return;']],
    ['a name that nobody has', { ports: [{ port: 'none' }] }, []],
    [
      'a block with a hole',
      { from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] },
      ['ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16 } return;'],
    ],
    ['every address', { from: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }, ['return;']],
    ['a block that is none', { from: [{ ipBlock: { cidr: '10.0.0.0/8; accept' } }] }, []],
  ])('in from %s', (_, opening, expected) => {
    expect(rules({ podSelector: web, ingress: [opening] })).toEqual([...expected, 'drop;']);
  });

  test('out is judged where it is asked for, with the ports of those reached', () => {
    const to = [{ podSelector: { matchLabels: { app: 'client' } } }];
    const spec = {
      podSelector: web,
      policyTypes: ['Egress'] as const,
      egress: [{ to, ports: [{ port: 'http' }] }],
    };
    expect(rules(spec)).toEqual(['ip daddr 10.0.0.2 tcp dport 8080 return;', 'drop;']);
  });

  test('pods of the node, of the past and without an address have no rules', () => {
    const past = { ...pod('a', 'web', '10.0.0.4'), status: { phase: 'Succeeded', podIP: '10.0.0.4' } };
    const others = [pod('a', 'web', '10.0.0.5', { hostNetwork: true }), past, pod('a', 'web', '')];
    const text = compile({ ...world({ podSelector: {} }), pods: others }, 'n-1');
    expect(text).not.toContain('jump');
  });
});

test.each([
  [{}, true],
  [{ matchLabels: { app: 'x' } }, true],
  [{ matchLabels: { app: 'y' } }, false],
  [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['x', 'y'] }] }, true],
  [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['x'] }] }, false],
  [{ matchExpressions: [{ key: 'none', operator: 'NotIn', values: ['x'] }] }, true],
  [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
  [{ matchExpressions: [{ key: 'toString', operator: 'Exists' }] }, false],
  [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
] as const)('%j selects app=x: %j', (selector, expected) => {
  expect(selects(selector, { app: 'x' })).toBe(expected);
});
