/**
 * Rules by which our pods at a peer reach ClusterIPs of ours. kube-proxy translates them, and afterwards only destinations count that
 * these pods reach anyway. Each rule asks for the pods' own addresses: what else a peer is given is not given by ClusterIPs.
 */
import { peerName } from './names.ts';
import { familyOf, type PlanPeer, WORDS } from './peer.ts';

const rulesOf = (
  { id, services }: PlanPeer,
  rule: (words: { word: 'ip' | 'ip6'; range: string; abroad: string }) => string,
): string[] =>
  services.map(({ family, prefix: range }) =>
    rule({ word: WORDS[family], range, abroad: `@${peerName('abroad', id, family)}` }),
  );

/** What comes out of the tunnel. Each packet is judged: a connection ends when the choice is taken back, or the pod is gone. */
export const arriving = (plan: PlanPeer): string[] =>
  rulesOf(plan, ({ word, range, abroad }) => `${word} saddr ${abroad} ${word} daddr ${range} accept`);

/** The endpoint that kube-proxy chose may run beside the pod that asks, or be that pod: this is no way to a third cluster. */
export const besides = (plan: PlanPeer): string[] =>
  rulesOf(plan, ({ word, range, abroad }) => {
    const pods = `${word} saddr ${abroad} ${word} daddr ${abroad}`;
    return `${pods} ct original ${word} daddr ${range} accept`;
  });

/** Such an endpoint would answer a pod of its own cluster directly, and that pod awaits the answer from the ClusterIP. */
export function hairpins(plan: PlanPeer): string[] {
  const { gateway } = plan;
  if (gateway === undefined) return [];
  const own = { ...plan, services: plan.services.filter(({ family }) => family === familyOf(gateway)) };
  return rulesOf(own, ({ word, range, abroad }) => {
    const pods = `${word} saddr ${abroad} ct original ${word} daddr ${range}`;
    return `${pods} snat ${word} to ${gateway}`;
  });
}

/** Answers leave as they are. */
export const answering = (plan: PlanPeer): string[] =>
  rulesOf(plan, ({ word, range }) => `${word} saddr ${range} accept`);
