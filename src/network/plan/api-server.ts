/** Rules by which our pods at a peer reach API servers of ours, and a peer's pods here do not reach theirs. */
import type { HomeApiAddress } from '../../api/tunnel.ts';
import { joinEndpoint } from '../../lib/endpoint.ts';
import type { ChainConfig } from '../host/host-config.ts';
import { HOOKS, peerName, REFUSED_HOSTED, refusedName } from './names.ts';
import { type ApiServerWay, familyOf, type PlannedPeer, type PlanPeer, WORDS } from './peer.ts';
import { refuse } from './sets.ts';

interface Words extends ApiServerWay {
  word: 'ip' | 'ip6';
  /** Matches the pods of ours at that peer that have a token for our API server. */
  fromClients: string;
}

/** Rules about our API server, where the peer may reach it. */
function rulesOf({ id, apiServer }: PlanPeer, rule: (words: Words) => string): string[] {
  if (apiServer === undefined) return [];
  const word = WORDS[apiServer.family];
  const fromClients = `${word} saddr @${peerName('clients', id, apiServer.family)}`;
  return [rule({ ...apiServer, word, fromClients })];
}

interface ServiceWords {
  word: 'ip' | 'ip6';
  /** Of ClusterIPs. */
  range: string;
  server: HomeApiAddress;
  /** The pods that reach it; undefined where none does. */
  clients: string | undefined;
}

/** Rules about the Service `kubernetes`, which leads to any of our API servers, where the peer reaches ClusterIPs. */
const byClusterIP = (
  { id, services, servers, apiServer }: PlanPeer,
  rule: (words: ServiceWords) => string | [],
): string[] =>
  services.flatMap(({ family, prefix: range }) =>
    servers
      .filter(({ address }) => familyOf(address) === family)
      .flatMap((server) => {
        const clients = apiServer?.family === family ? `@${peerName('clients', id, family)}` : undefined;
        return rule({ word: WORDS[family], range, server, clients });
      }),
  );

/**
 * What comes out of the tunnel, before the translation. Each packet is judged, also of connections that are open: they end when the
 * way is closed, or the pod is gone. These rules stand before those that let answers through.
 */
export function arriving(plan: PlanPeer): string[] {
  const { id, apiServersAs: servers } = plan;
  const others = byClusterIP(plan, ({ word, range, server, clients }) => {
    const from = clients === undefined ? '' : `${word} saddr != ${clients} `;
    return `${from}${word} daddr ${range} ct reply ${word} saddr ${server.address} ${refuse(refusedName(id))}`;
  });
  if (servers === undefined) return others;
  const open = rulesOf(
    plan,
    ({ word, as, port, fromClients }) => `${fromClients} ${word} daddr ${as} tcp dport ${port} accept`,
  );
  return [...open, `${WORDS[familyOf(servers)]} daddr ${servers} ${refuse(refusedName(id))}`, ...others];
}

export const translated = (plan: PlanPeer): string[] =>
  rulesOf(plan, ({ word, as, port, endpoint: { address, port: own } }) => {
    const to = joinEndpoint(address, own);
    return `${word} daddr ${as} tcp dport ${port} dnat ${word} to ${to}`;
  });

/**
 * New connections after the translation, ours or that of kube-proxy. What a peer sends to the API server's own address is something
 * else.
 */
export const forwarded = (plan: PlanPeer, verdict = 'accept'): string[] => [
  ...rulesOf(plan, ({ word, as, endpoint: { address, port }, fromClients }) => {
    const to = `${word} daddr ${address} tcp dport ${port}`;
    return `${fromClients} ${to} ct original ${word} daddr ${as} ${verdict}`;
  }),
  ...byClusterIP(plan, ({ word, range, server: { address, port }, clients }) => {
    if (clients === undefined) return [];
    const to = `${word} daddr ${address} tcp dport ${port}`;
    return `${word} saddr ${clients} ${to} ct original ${word} daddr ${range} ${verdict}`;
  }),
];

/** An API server on another host knows no way back to the views of peers. */
export function toServers(peers: readonly PlannedPeer[]): ChainConfig[] {
  const rules = peers.flatMap(({ plan }) => forwarded(plan, 'masquerade'));
  return rules.length === 0 ? [] : [{ name: 'to_servers', hook: HOOKS.toServers, rules }];
}

/** The API server of the peer, from which our policy keeps its pods here. */
export function forbiddenRules({ forbidden }: PlanPeer): string[] {
  if (forbidden === undefined) return [];
  const { address, port } = forbidden;
  return [`${WORDS[familyOf(address)]} daddr ${address} tcp dport ${port} ${refuse(REFUSED_HOSTED)}`];
}
