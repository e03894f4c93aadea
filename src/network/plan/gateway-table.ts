import { type OwnNetwork, PROBE_PORT } from '../../api/own-network.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import { contains, parseAddress, prefixesOf } from '../../lib/prefix.ts';
import type { ChainConfig, TableConfig } from '../host/host-config.ts';
import { arriving, forbiddenRules, forwarded, toServers, translated } from './api-server.ts';
import * as clusterIPs from './cluster-ips.ts';
import {
  HOOKS,
  peerName,
  type PeerPart,
  REFUSED_DEPARTURE,
  REFUSED_HOSTED,
  REFUSED_INPUT,
  REFUSED_LOOP,
  REFUSED_SOURCE,
  REFUSED_TRANSIT,
  refusedName,
} from './names.ts';
import { FAMILIES, familyOf, type PlannedPeer, type PlanPeer, WORDS } from './peer.ts';
import {
  addressSets,
  directory,
  type PortSet,
  portSets,
  addressKey,
  prefixSet,
  refuse,
  toOneOf,
  toPeer,
} from './sets.ts';

export interface GatewayTableFacts {
  network: OwnNetwork;
  /** WireGuard. */
  link: string;
  /** UDP, of WireGuard. */
  port: number;
  /** Addresses of all pods of peers that run here, also of peers that get no chains: without a tunnel, or refused. */
  hosted?: readonly string[];
}

/** The reasons for hooks and their order are in docs/decisions/0022-address-translation.md. */
export function gatewayTable(facts: GatewayTableFacts, peers: readonly PlannedPeer[]): TableConfig {
  const plans = peers.map(({ plan }) => plan);
  const chains = peers.flatMap((peer) => peerChains(peer, facts.link));
  const open = peers.filter(({ tunnel }) => tunnel.spec.transit === 'OffloadedPods');
  const used = portSets(
    (transport, family) => `used${transport}${family}`,
    open.flatMap(({ tunnel, plan }) => seenOf(plan, tunnel.spec.used)),
  );
  return {
    chains: [...baseChains(facts, used), ...toServers(peers), ...chains],
    sets: [
      ...DIRECTORIES.flatMap((part) => directory(part, plans)),
      ...directory(
        'api',
        plans.filter(({ apiServer }) => apiServer !== undefined),
      ),
      ...FAMILIES.map((family) => prefixSet(`pods${family}`, family, facts.network.pods)),
      ...addressSets(
        (family) => `nodes${family}`,
        facts.network.nodes.flatMap(({ address, others = [] }) => [address, ...others]),
      ),
      ...FAMILIES.map((family) =>
        prefixSet(
          `views${family}`,
          family,
          peers.flatMap(({ plan }) => plan.views.map(({ prefix }) => prefix)),
        ),
      ),
      ...addressSets(
        (family) => `transit${family}`,
        open.flatMap(({ abroad }) => abroad),
      ),
      ...addressSets(
        (family) => `hosted${family}`,
        [...peers.flatMap(({ hosted }) => hosted), ...(facts.hosted ?? [])],
      ),
      ...peers.flatMap(({ tunnel, plan, abroad, clients, hosted }) => [
        // One element for each pod, so only where a rule asks for it.
        ...(tunnel.spec.access === 'OffloadedPods' || plan.services.length > 0
          ? addressSets((family) => peerName('abroad', plan.id, family), abroad, familiesOf(plan))
          : []),
        ...(plan.apiServer === undefined
          ? []
          : addressSets((family) => peerName('clients', plan.id, family), clients, [plan.apiServer.family])),
        ...addressSets((family) => peerName('hosted', plan.id, family), hosted, familiesOf(plan)),
      ]),
      ...used.map(({ set }) => set),
      ...peers.flatMap((peer) => offeredSets(peer).map(({ set }) => set)),
    ],
  };
}

/** Parts whose chain is found by a view: the view of the source for what arrives, of the destination for what leaves. */
const DIRECTORIES: readonly PeerPart[] = ['from', 'dnat', 'access', 'mss', 'snat', 'sent', 'home'];

function baseChains({ link, port, network }: GatewayTableFacts, used: readonly PortSet[]): ChainConfig[] {
  const [arrives, leaves] = [`iifname "${link}"`, `oifname "${link}"`];
  const others = `iifname != "${link}" return`;
  const answers = 'ct state established,related accept';
  const between = (family: 4 | 6): string =>
    `${WORDS[family]} saddr @transit${family} ${WORDS[family]} daddr @transit${family} accept`;
  return [
    {
      name: 'arrival',
      hook: HOOKS.arrival,
      rules: [others, ...toPeer('from', 'saddr'), refuse(REFUSED_SOURCE)],
    },
    { name: 'destination', hook: HOOKS.destination, rules: toPeer('dnat', 'saddr', `${arrives} `) },
    inputChain(others, answers, network.gatewayAddress),
    {
      name: 'forward',
      hook: HOOKS.forward,
      rules: [
        'tcp flags & (syn | rst) == syn jump segment',
        // This stands before the answers: a connection that began before the pod was known to be a peer's ends here.
        `${leaves} ct direction original jump hosted`,
        others,
        answers,
        ...toPeer('access', 'saddr'),
        refuse(REFUSED_SOURCE),
      ],
    },
    // A peer that seems to be at an address within its own views would have each packet wrapped again and again. This ends it before
    // the gateway notices, and takes such a peer out.
    { name: 'output', hook: HOOKS.output, rules: [`${leaves} udp sport ${port} ${refuse(REFUSED_LOOP)}`] },
    {
      name: 'segment',
      rules: [...toPeer('mss', 'saddr', `${arrives} `), ...toPeer('mss', 'daddr', `${leaves} `)],
    },
    {
      name: 'hosted',
      rules: FAMILIES.map(
        (family) =>
          `${WORDS[family]} saddr @hosted${family} ${addressKey(family, 'daddr')} vmap @home${family}`,
      ),
    },
    {
      name: 'transit',
      rules: [
        ...FAMILIES.map(between),
        ...used.map((set) => `${WORDS[set.family]} saddr @transit${set.family} ${toOneOf(set)} accept`),
        refuse(REFUSED_TRANSIT),
      ],
    },
    { name: 'source', hook: HOOKS.source, rules: toPeer('snat', 'daddr', `${leaves} `) },
    {
      name: 'departure',
      hook: HOOKS.departure,
      rules: [
        `oifname != "${link}" return`,
        // A packet that conntrack does not follow is not translated either.
        `ct state invalid ${refuse(REFUSED_DEPARTURE)}`,
        ...toPeer('sent', 'daddr'),
        refuse(REFUSED_DEPARTURE),
      ],
    },
  ];
}

/** To the host of the gateway: probes, and an API server that runs there. */
function inputChain(others: string, answers: string, gateway: string): ChainConfig {
  const rules = [others, answers, ...probes(gateway), ...toPeer('api', 'saddr'), refuse(REFUSED_INPUT)];
  return { name: 'input', hook: HOOKS.input, rules };
}

/**
 * New packets that a peer may send to our gateway itself. Nobody listens on the TCP port: the kernel's refusal is an
 * answer, also while our program is not running. `limit` is a statement of nft; each peer has its own.
 */
function probes(gateway: string, limit = ''): string[] {
  const family = familyOf(gateway);
  const echo = family === 4 ? 'icmp type echo-request' : 'icmpv6 type echo-request';
  return [echo, `udp dport ${PROBE_PORT}`, `tcp dport ${PROBE_PORT}`].map(
    (what) => `${WORDS[family]} daddr ${gateway} ${what}${limit} accept`,
  );
}

/** Bytes of the headers of IP without options and of TCP, together. */
const HEADERS: Readonly<Record<4 | 6, number>> = { 4: 40, 6: 60 };
const PROBE_LIMIT = ' limit rate 100/second burst 100 packets';

/**
 * How many connections a peer may have open, and how many it may begin. Its pods here may have as many again. The decision record
 * gives the reasons for the numbers.
 */
const MOST_OPEN = 8192;
const OPENINGS = '500/second burst 2000 packets';

/**
 * Bounds how much conntrack has to keep. Matches only packets that begin a connection, for datagrams are `new` until there is an
 * answer. The rate comes first, since the count looks at every open connection.
 */
const bounds = (name: string): string[] =>
  [`limit rate over ${OPENINGS}`, `ct count over ${MOST_OPEN}`].map(
    (bound) => `ct status ! confirmed ${bound} ${refuse(name)}`,
  );

function peerChains(peer: PlannedPeer, link: string): ChainConfig[] {
  const { plan, mtu } = peer;
  const refused = refusedName(plan.id);
  const chain = (part: PeerPart, rules: string[]): ChainConfig => ({ name: peerName(part, plan.id), rules });
  return [
    chain('from', fromRules(plan)),
    // There is a rule also where nothing is rewritten: what is decided here, kube-proxy does not take for a port of a node.
    // Only ClusterIPs are left to it.
    chain('dnat', [
      ...translated(plan),
      ...plan.exports.map(({ family, prefix, as }) => {
        const word = WORDS[family];
        return `${word} daddr ${as} dnat ${word} prefix to ${prefix}`;
      }),
    ]),
    chain('access', [
      ...bounds(refused),
      ...clusterIPs.besides(plan),
      `oifname "${link}" jump transit`,
      ...accessRules(peer),
      refuse(refused),
    ]),
    // The source is checked first, so that nobody else uses up the connections that the peer may open.
    chain('home', [
      ...familiesOf(plan).map(
        (family) =>
          `${WORDS[family]} saddr != @${peerName('hosted', plan.id, family)} ${refuse(REFUSED_HOSTED)}`,
      ),
      ...forbiddenRules(plan),
      ...bounds(refused),
    ]),
    // The kernel only lowers the segment size.
    chain(
      'mss',
      familiesOf(plan).map(
        (family) => `meta nfproto ipv${family} tcp option maxseg size set ${mtu - HEADERS[family]}`,
      ),
    ),
    chain('snat', snatRules(plan)),
    chain('sent', [
      ...errorRules(plan),
      ...plan.exports.map(({ family, as }) => `${WORDS[family]} saddr ${as} accept`),
      ...clusterIPs.answering(plan),
    ]),
    ...(plan.apiServer === undefined ? [] : [chain('api', [...bounds(refused), ...forwarded(plan)])]),
  ];
}

function fromRules(plan: PlanPeer): string[] {
  const rules = plan.exports.flatMap(({ use, family, as }) => {
    const to = `${WORDS[family]} daddr ${as}`;
    return use === 'External' ? [`${to} ct state established,related accept`] : [`${to} accept`];
  });
  const ours = plan.gateway === undefined ? [] : probes(plan.gateway, PROBE_LIMIT);
  return [...arriving(plan), ...clusterIPs.arriving(plan), ...rules, ...ours, refuse(refusedName(plan.id))];
}

/** Families of the peer's views. Packets of another family cannot come through its tunnel. */
const familiesOf = ({ views }: PlanPeer): (4 | 6)[] =>
  FAMILIES.filter((family) => views.some((view) => view.family === family));

/** Rules for new connections to pods. Destinations have been translated to our own addresses by now. */
function accessRules(peer: PlannedPeer): string[] {
  const { tunnel, plan } = peer;
  const { access } = tunnel.spec;
  if (access === 'None') return [];
  // In a flat network nodes have addresses out of the range of pods.
  const nodes = familiesOf(plan).map(
    (family) => `${WORDS[family]} daddr @nodes${family} ${refuse(refusedName(plan.id))}`,
  );
  const services = offeredSets(peer).map(
    (set) => `${toOneOf(set)} ${WORDS[set.family]} daddr != @hosted${set.family} accept`,
  );
  const pods = familiesOf(plan).flatMap((family) => {
    const word = WORDS[family];
    // A pod that belongs to another peer is not ours to give.
    const pods = `${addressKey(family, 'daddr')} @pods${family} ${word} daddr != @hosted${family} accept`;
    return [
      `${word} daddr @${peerName('hosted', plan.id, family)} accept`,
      access === 'AllPods' ? pods : `${word} saddr @${peerName('abroad', plan.id, family)} ${pods}`,
    ];
  });
  return [...forwarded(plan), ...nodes, ...pods, ...services];
}

/** Sets of the endpoints of our Services that the peer is offered. There are none where it may reach all pods anyway. */
const offeredSets = ({ tunnel: { spec }, plan, own }: PlannedPeer): PortSet[] =>
  spec.access === 'OffloadedPods'
    ? portSets(
        (transport, family) => peerName(`offered${transport}`, plan.id, family),
        inside(own, spec.offered),
        familiesOf(plan),
      )
    : [];

/** Whoever has written the Tunnel, only places count that we see as that peer's. */
const seenOf = ({ views }: PlanPeer, places: readonly AddressPort[] = []): AddressPort[] =>
  inside(
    views.map(({ prefix }) => prefix),
    places,
  );

function inside(texts: readonly string[], places: readonly AddressPort[] = []): AddressPort[] {
  if (places.length === 0) return [];
  const prefixes = prefixesOf(texts);
  return places.filter(({ address: text }) => {
    const address = parseAddress(text);
    return address !== undefined && prefixes.some((prefix) => contains(prefix, address));
  });
}

/**
 * Decides before the CNI and kube-proxy masquerade to an address of the node, to which a peer could not answer. Sources that are not
 * exported leave under the gateway's address, but for sources of other peers.
 */
function snatRules(plan: PlanPeer): string[] {
  const { exports, gateway } = plan;
  const rules = exports.map(({ family, prefix, as }) => {
    const word = WORDS[family];
    return `${word} saddr ${prefix} snat ${word} prefix to ${as}`;
  });
  if (gateway === undefined) return rules;
  const family = familyOf(gateway);
  const word = WORDS[family];
  return [
    ...rules,
    ...clusterIPs.hairpins(plan),
    `${addressKey(family, 'saddr')} @views${family} return`,
    `meta nfproto ipv${family} snat ${word} to ${gateway}`,
  ];
}

/** Numbers of the protocols: nft reads their names by a table of the host (/etc/protocols) that need not be there. */
const ICMP: Readonly<Record<4 | 6, number>> = { 4: 1, 6: 58 };

/**
 * ICMP errors that our gateway and our nodes make come from their addresses of the external range. conntrack translates them as it
 * translates the connection that they are about, and no nat chain sees them: where pods are seen as themselves they would leave with
 * an address that the peer does not know, and its senders would never learn the size of our links. To them they come from our gateway.
 */
function errorRules({ exports, gateway }: PlanPeer): string[] {
  const external = exports.find(({ use }) => use === 'External');
  if (gateway === undefined || external === undefined || external.prefix === external.as) return [];
  const { family, prefix } = external;
  const isAsItIs = exports.some((one) => one.family === family && one.prefix === one.as);
  if (!isAsItIs) return [];
  const word = WORDS[family];
  return [
    `${word} saddr ${prefix} meta l4proto ${ICMP[family]} ct state related ${word} saddr set ${gateway} accept`,
  ];
}
