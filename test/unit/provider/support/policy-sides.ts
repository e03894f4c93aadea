import type { GuestNetworkPolicy } from '../../../../src/api/guest-network-policy.ts';
import { matchesSelector } from '../../../../src/api/label-selector.ts';
import {
  LABEL_GUEST_POLICY,
  type NetworkPolicySpec,
  policyTypesOf,
} from '../../../../src/api/network-policy.ts';
import type { Namespace, Pod } from '../../../../src/api/wire.ts';
import { forgeGuestPolicy } from '../../../../src/hosting/tenants/guest-policy.ts';
import {
  forgeIsolation,
  guestBounds,
  type IsolationFacts,
} from '../../../../src/hosting/tenants/isolation.ts';
import { withoutKeys } from '../../../../src/lib/fields.ts';
import { forgePolicySpec, type PolicyContext } from '../../../../src/provider/reflect/policy-rules.ts';
import { allows, type Party, type PolicyWorldModel } from '../../../support/policy-model.ts';
import { FakeNetwork } from './network.ts';
import { NOW } from './pods.ts';

/**
 * The whole way of a NetworkPolicy: what home says, what the agent asks for, what the provider makes, and what packets are let through,
 * by a model of NetworkPolicies that is no part of the product. Home's pods are in 10.1.0.0/16, over there 100.99.0.0/16. Pods over
 * there are in 10.0.0.0/16, at home 100.64.0.0/16.
 */

const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  shop: { 'kubernetes.io/metadata.name': 'shop', team: 'sales' },
  stock: { 'kubernetes.io/metadata.name': 'stock', team: 'sales' },
  lab: { 'kubernetes.io/metadata.name': 'lab', team: 'research' },
  'kube-system': { 'kubernetes.io/metadata.name': 'kube-system' },
};
/** `lab` is not offloaded. */
const TENANTS: Readonly<Record<string, string>> = { shop: 'rome-shop', stock: 'rome-stock' };
const PORTS = { http: 8080, metrics: 9090, dns: 53 };

export interface Body {
  name: string;
  namespace: string;
  labels: Record<string, string>;
  /** The last two numbers of its address. */
  host: string;
  isAbroad?: boolean;
  isThird?: boolean;
}
export const BODIES: readonly Body[] = [
  { name: 'web', namespace: 'shop', labels: { app: 'web', steers: 'it' }, host: '1.1', isAbroad: true },
  { name: 'db', namespace: 'shop', labels: { app: 'db', tier: 'back' }, host: '1.2', isAbroad: true },
  { name: 'box', namespace: 'stock', labels: { app: 'box' }, host: '1.3', isAbroad: true },
  { name: 'web-home', namespace: 'shop', labels: { app: 'web' }, host: '2.1' },
  { name: 'db-home', namespace: 'shop', labels: { app: 'db', tier: 'back' }, host: '2.2' },
  { name: 'box-home', namespace: 'stock', labels: { app: 'box' }, host: '2.3' },
  { name: 'probe', namespace: 'lab', labels: { app: 'web' }, host: '2.4' },
  { name: 'coredns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' }, host: '2.5' },
  // In a third cluster, which home sees and forwards.
  { name: 'web-third', namespace: 'shop', labels: { app: 'web' }, host: '3.1', isThird: true },
];
const network = new FakeNetwork();
network.set({
  seenAs: [
    { prefix: '10.1.0.0/16', as: '100.99.0.0/16' },
    { prefix: '100.80.0.0/16', as: '100.98.0.0/16' },
  ],
});
const addressAtHome = ({ host, isAbroad, isThird }: Body): string =>
  isThird === true ? `100.80.${host}` : isAbroad === true ? `100.64.${host}` : `10.1.${host}`;
const addressAbroad = ({ host, isAbroad, isThird }: Body): string =>
  isThird === true ? `100.98.${host}` : isAbroad === true ? `10.0.${host}` : `100.99.${host}`;

const meta = (name: string): Pod['metadata'] => ({
  name,
  uid: name,
  resourceVersion: '1',
  creationTimestamp: NOW,
});
export const context: PolicyContext = {
  isOther: (key) => key === 'steers' || key === 'added',
  homeNamespace: 'shop',
  network,
  dns: { own: { nameservers: ['10.96.0.10'], domain: 'cluster.local' }, way: { kind: 'NotChosen' } },
  world: {
    hasNodeAt: (address) => address === '172.30.0.12',
    namespaces: () =>
      Object.entries(NAMESPACES).map(([name, labels]): Namespace => ({
        metadata: { ...meta(name), labels: { ...labels } },
      })),
    podsIn: (namespace) =>
      BODIES.filter((body) => body.namespace === namespace).map((body): Pod => ({
        metadata: { ...meta(body.name), namespace, labels: body.labels },
        spec: {
          containers: [
            {
              name: 'c',
              ports: Object.entries(PORTS).map(([name, containerPort]) => ({ name, containerPort })),
            },
          ],
        },
        status: { podIPs: [{ ip: addressAtHome(body) }] },
      })),
  },
};

const FACTS: IsolationFacts = {
  peer: 'rome',
  prefixes: ['100.99.0.0/16', '100.98.0.0/16'],
  own: { inside: ['10.0.0.0/16', '10.97.0.0/16'], nodes: ['192.168.7.4/32'], beside: [] },
};
/** Pods and addresses that are no bodies of home. */
export const OTHERS: readonly { name: string; home: Party; abroad: Party }[] = [
  { name: 'the Internet', home: { address: '198.51.100.8' }, abroad: { address: '198.51.100.8' } },
  { name: 'a network beside home', home: { address: '10.200.0.9' }, abroad: { address: '10.200.0.9' } },
];

function atHome(policies: readonly NetworkPolicySpec[]): PolicyWorldModel {
  return { namespaces: NAMESPACES, policies: policies.map((spec) => ({ namespace: 'shop', spec })) };
}

export function abroad(policies: readonly NetworkPolicySpec[]): PolicyWorldModel {
  const made = policies.map((spec, index) => {
    const { spec: forged } = forgePolicySpec(spec, context);
    const copy: GuestNetworkPolicy = {
      metadata: { ...meta(`p${index}`), namespace: 'rome-shop' },
      spec: JSON.parse(JSON.stringify(forged)) as GuestNetworkPolicy['spec'],
    };
    const facts = { peer: 'rome', bounds: guestBounds(FACTS), tenantOf: (home: string) => TENANTS[home] };
    return forgeGuestPolicy(copy, facts).policy.spec ?? {};
  });
  const isolation = Object.values(TENANTS).flatMap((namespace) =>
    forgeIsolation(namespace, {}, FACTS).map(({ spec = {} }) => ({ namespace, spec })),
  );
  const namespaces = Object.fromEntries([
    ...Object.values(TENANTS).map((name) => [
      name,
      { 'kubernetes.io/metadata.name': name, 'tributary.dev/peer': 'rome' },
    ]),
    ['kube-system', { 'kubernetes.io/metadata.name': 'kube-system' }],
  ]) as PolicyWorldModel['namespaces'];
  return { namespaces, policies: [...isolation, ...made.map((spec) => ({ namespace: 'rome-shop', spec }))] };
}

const homeParty = (body: Body): Party => ({
  address: addressAtHome(body),
  pod: { namespace: body.namespace, labels: body.labels, ports: PORTS },
});

/** A pod over there bears the marks of the directions in which policies select it. */
export function abroadParty(body: Body, policies: readonly NetworkPolicySpec[]): Party {
  if (body.isAbroad !== true) return { address: addressAbroad(body) };
  const marks = policies
    .filter(({ podSelector = {} }) => body.namespace === 'shop' && matchesSelector(podSelector, body.labels))
    .flatMap(policyTypesOf)
    .map((type) => [LABEL_GUEST_POLICY[type], 'true'] as const);
  return {
    address: addressAbroad(body),
    pod: {
      namespace: TENANTS[body.namespace] ?? '',
      labels: { ...withoutKeys(body.labels, ['steers']), added: 'yes', ...Object.fromEntries(marks) },
      ports: PORTS,
    },
  };
}

export interface Answer {
  what: string;
  home: boolean;
  abroad: boolean;
}

/** Of pods over there in `shop`, with everybody, in both directions. */
export function tried(
  policies: readonly NetworkPolicySpec[],
  ports: readonly number[] = [80, 8080, 9090],
): Answer[] {
  const [here, there] = [atHome(policies), abroad(policies)];
  const everybody = [
    ...BODIES.map((body) => ({
      name: body.name,
      home: homeParty(body),
      abroad: abroadParty(body, policies),
    })),
    ...OTHERS,
  ];
  return BODIES.filter((body) => body.isAbroad === true && body.namespace === 'shop').flatMap((body) =>
    (['Ingress', 'Egress'] as const).flatMap((type) =>
      everybody
        .filter((other) => other.name !== body.name)
        .flatMap((other) =>
          ports.map((port): Answer => {
            const common = { port, protocol: 'TCP' as const };
            return {
              what: `${body.name} ${type === 'Ingress' ? 'from' : 'to'} ${other.name}:${port}`,
              home: allows(here, type, { subject: homeParty(body), other: other.home, ...common }),
              abroad: allows(there, type, {
                subject: abroadParty(body, policies),
                other: other.abroad,
                ...common,
              }),
            };
          }),
        ),
    ),
  );
}

export const open = (answers: readonly Answer[], side: 'home' | 'abroad'): string[] =>
  answers.filter((answer) => answer[side]).map(({ what }) => what);
export const isOfPods = ({ what }: Answer): boolean => OTHERS.every(({ name }) => !what.includes(name));
