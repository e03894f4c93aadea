import { type PrefixView, TUNNEL_REASONS } from '../../api/tunnel.ts';
import { canonicalPrefix, formatPrefix, type IpFamily, type Prefix, tryPrefix } from '../../lib/prefix.ts';
import { type RangeTree, wholeSpaces } from './range-tree.ts';
import { whySpecial } from './special-ranges.ts';
import { refusal, type RefusedPrefix } from './wanted-prefixes.ts';

export interface SeenAs {
  /** For Tunnel.spec.seenAs, in the order of `exported`: a peer that shuffles its list changes nothing. */
  seenAs: PrefixView[];
  refused: RefusedPrefix[];
}

/**
 * Checks what a peer says about how it sees our prefixes. It is believed only for prefixes that we export, once for each, and only if
 * the prefix that it names has the same family and length, has no special addresses, and overlaps no other one that it names.
 *
 * `as` may overlap ranges of ours, even our Services: it is an address of the peer, chosen by its own IPAM, which knows nothing of
 * ours. That is harmless, because such an address is never routed here. It is only written into packets that go into the peer's
 * tunnel, and read from packets that come out of it. There the filter lets nothing else pass, and the address becomes an exported
 * one before anything looks up a route or a Service.
 */
export function checkSeenAs(views: readonly PrefixView[], exported: readonly string[]): SeenAs {
  const refused: RefusedPrefix[] = [];
  const refuse = (prefix: string, message: string): void => {
    refused.push(refusal(prefix, TUNNEL_REASONS.prefixRefused, message));
  };
  const said = new Map<string, string>();
  for (const { prefix, as } of views) {
    const own = canonicalPrefix(prefix);
    if (own === undefined || said.has(own)) refuse(prefix, 'it is no CIDR, or is given twice');
    else said.set(own, as);
  }
  const seenAs: PrefixView[] = [];
  const taken = wholeSpaces();
  for (const own of new Set(exported.flatMap((text) => canonicalPrefix(text) ?? []))) {
    const as = said.get(own);
    if (as === undefined) continue;
    said.delete(own);
    const view = viewOf(own, as, taken);
    if (typeof view === 'string') refuse(own, view);
    else seenAs.push(view);
  }
  for (const prefix of said.keys()) refuse(prefix, `${prefix} is not exported to this peer`);
  return { seenAs, refused };
}

/** The view, or what is wrong with it. */
function viewOf(own: string, text: string, taken: Record<IpFamily, RangeTree>): PrefixView | string {
  const prefix = tryPrefix(own);
  const as: Prefix | undefined = tryPrefix(text);
  if (prefix === undefined || as?.family !== prefix.family || as.length !== prefix.length) {
    return `${own} cannot be seen as ${JSON.stringify(text.slice(0, 60))}: another family or length, or no CIDR`;
  }
  const special = whySpecial(as);
  if (special !== undefined) return `${own} cannot be seen as ${formatPrefix(as)}: ${special}`;
  if (!taken[as.family].take(as)) return `${own} is seen as ${formatPrefix(as)}, which overlaps another view`;
  return { prefix: own, as: formatPrefix(as) };
}
