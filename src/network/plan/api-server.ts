/** Rules by which our pods at a peer reach an API server of ours, and a peer's pods here do not reach theirs. */
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

/**
 * What comes out of the tunnel, before the translation. Each packet is judged, also of connections that are open: they end when the
 * way is closed, or the pod is gone. These rules stand before those that let answers through.
 */
export function arriving(plan: PlanPeer): string[] {
  const { id, apiServersAs: servers } = plan;
  if (servers === undefined) return [];
  const open = rulesOf(
    plan,
    ({ word, as, port, fromClients }) => `${fromClients} ${word} daddr ${as} tcp dport ${port} accept`,
  );
  return [...open, `${WORDS[familyOf(servers)]} daddr ${servers} ${refuse(refusedName(id))}`];
}

export const translated = (plan: PlanPeer): string[] =>
  rulesOf(plan, ({ word, as, port, endpoint: { address, port: own } }) => {
    const to = joinEndpoint(address, own);
    return `${word} daddr ${as} tcp dport ${port} dnat ${word} to ${to}`;
  });

/** New connections after the translation. What a peer sends to the API server's own address is something else. */
export const forwarded = (plan: PlanPeer, verdict = 'accept'): string[] =>
  rulesOf(plan, ({ word, as, endpoint: { address, port }, fromClients }) => {
    const to = `${word} daddr ${address} tcp dport ${port}`;
    return `${fromClients} ${to} ct original ${word} daddr ${as} ${verdict}`;
  });

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
