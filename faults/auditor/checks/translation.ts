/**
 * I9: translations of prefixes are one to one, and what was not translated does not leave. What can be seen from outside is the rules and
 * their counters, not the packets: README.md says what that proves. Pure.
 */
import {
  DEPARTURE_CHAIN,
  DESTINATION_CHAIN,
  GATEWAY_TABLE,
  SOURCE_CHAIN,
  TRANSLATING_CHAIN,
  VIEW_MAPS,
} from '../contract.ts';
import type { Violation } from '../violation.ts';

/** What `nft -j list ruleset` prints, as far as it is read. */
export interface Ruleset {
  nftables: {
    table?: { family: string; name: string };
    chain?: { family: string; table: string; name: string; hook?: string; policy?: string };
    rule?: { family: string; table: string; chain: string; comment?: string; expr: Expression[] };
    map?: { family: string; table: string; name: string; elem?: [Address, Verdict][] };
  }[];
}
type Address =
  string | { prefix?: { addr: string; len: number }; range?: [string, string]; elem?: { val: Address } };
interface Verdict {
  jump?: { target: string };
  goto?: { target: string };
}
interface Expression extends Verdict {
  match?: { op: string; left: { payload?: { field?: string }; meta?: { key: string } }; right: Address };
  snat?: Translation;
  dnat?: Translation;
  drop?: null;
  return?: null;
  counter?: { packets: number } | null;
}
interface Translation {
  addr?: Address;
  flags?: string | string[];
}

/** One translation of a prefix into a prefix. */
interface Pair {
  readonly from: Range;
  readonly to: Range;
}
interface Range {
  readonly text: string;
  readonly family: 4 | 6;
  readonly low: bigint;
  readonly high: bigint;
}

type Rule = NonNullable<Ruleset['nftables'][number]['rule']>;

export function translationFaults(host: string, ruleset: Ruleset): Violation[] {
  const ours = ruleset.nftables.filter(
    ({ rule, chain, map }) => (rule ?? chain ?? map)?.table === GATEWAY_TABLE,
  );
  const rules = ours.flatMap(({ rule }) => rule ?? []);
  const byChain = Map.groupBy(rules, ({ chain }) => chain);
  const found = [
    ...peersOf(byChain).flatMap((peer) => peerFaults(peer, byChain)),
    ...viewFaults(ours.flatMap(({ map }) => map ?? [])),
    ...departureFaults(new Set(ours.flatMap(({ chain }) => chain?.name ?? [])), byChain),
  ];
  return found.map((what) => ({ invariant: 'I9', what: `host ${host}: ${what}` }));
}

function peersOf(byChain: ReadonlyMap<string, readonly Rule[]>): string[] {
  const names = [...byChain.keys()].flatMap(
    (chain) => (SOURCE_CHAIN.exec(chain) ?? DESTINATION_CHAIN.exec(chain))?.groups?.['peer'] ?? [],
  );
  return [...new Set(names)];
}

function peerFaults(peer: string, byChain: ReadonlyMap<string, readonly Rule[]>): string[] {
  const out = pairsOf(byChain.get(`snat_${peer}`) ?? [], 'snat');
  const back = pairsOf(byChain.get(`dnat_${peer}`) ?? [], 'dnat');
  return [
    ...notOneToOne(`chain snat_${peer}`, out),
    ...notOneToOne(`chain dnat_${peer}`, back),
    ...out
      .filter((pair) => !back.some((other) => isInverse(pair, other)))
      .map(
        ({ from, to }) =>
          `chain snat_${peer} translates ${from.text} to ${to.text}, and chain dnat_${peer} not back`,
      ),
    ...back
      .filter((pair) => !out.some((other) => isInverse(pair, other)))
      .map(
        ({ from, to }) =>
          `chain dnat_${peer} translates ${from.text} to ${to.text}, and chain snat_${peer} not back`,
      ),
  ];
}

/** Rules that translate a prefix; those of one address, such as the gateway's or an API server's, hide many behind one on purpose. */
function pairsOf(rules: readonly Rule[], verb: 'snat' | 'dnat'): Pair[] {
  return rules.flatMap(({ expr }): Pair[] => {
    const translation = expr.find((one) => one[verb] !== undefined)?.[verb];
    const isPrefix = [translation?.flags].flat().includes('netmap');
    const field = verb === 'snat' ? 'saddr' : 'daddr';
    const matched = expr.flatMap(({ match }) => (match?.left.payload?.field === field ? [match.right] : []));
    const [from, to] = [rangeOf(matched[0]), rangeOf(translation?.addr)];
    return isPrefix && from !== undefined && to !== undefined ? [{ from, to }] : [];
  });
}

const isSame = (a: Range, b: Range): boolean => a.family === b.family && a.low === b.low && a.high === b.high;
const isInverse = (a: Pair, b: Pair): boolean => isSame(a.from, b.to) && isSame(a.to, b.from);
const meets = (a: Range, b: Range): boolean => a.family === b.family && a.low <= b.high && b.low <= a.high;
const size = ({ low, high }: Range): bigint => high - low;

function notOneToOne(where: string, pairs: readonly Pair[]): string[] {
  const uneven = pairs
    .filter(({ from, to }) => from.family !== to.family || size(from) !== size(to))
    .map(({ from, to }) => `${where} translates ${from.text} to ${to.text}, which is of another size`);
  const clashes = pairs.flatMap((pair, index) =>
    pairs.slice(0, index).flatMap((other) => {
      const texts = `${other.from.text} to ${other.to.text} and ${pair.from.text} to ${pair.to.text}`;
      return meets(pair.to, other.to) && !isNested(pair, other)
        ? [`${where} translates ${texts}: two sources become one`]
        : isSame(pair.from, other.from)
          ? [`${where} translates ${texts}: one source becomes two`]
          : [];
    }),
  );
  return [...uneven, ...clashes];
}

/** A prefix within another one, translated likewise, is not two: the first rule decides, with the same outcome. */
const isNested = (a: Pair, b: Pair): boolean =>
  meets(a.from, b.from) && a.to.low - a.from.low === b.to.low - b.from.low;

/** A view belongs to one peer, whatever map is asked. */
function viewFaults(maps: readonly { name: string; elem?: [Address, Verdict][] }[]): string[] {
  const owners = new Map<string, { peer: string; map: string }>();
  const found: string[] = [];
  for (const { name, elem = [] } of maps.filter(({ name }) => VIEW_MAPS.test(name))) {
    for (const [key, verdict] of elem) {
      const view = rangeOf(key)?.text;
      const target = (verdict.jump ?? verdict.goto)?.target ?? '';
      const peer = target.slice(target.indexOf('_') + 1);
      if (view === undefined || peer === '') continue;
      const known = owners.get(view);
      if (known === undefined) owners.set(view, { peer, map: name });
      else if (known.peer !== peer)
        found.push(`view ${view} belongs to ${known.peer} in map ${known.map} and to ${peer} in map ${name}`);
    }
  }
  return found;
}

/** Where sources are translated, the last chain must drop whatever has no address that the peer knows. */
function departureFaults(
  chains: ReadonlySet<string>,
  byChain: ReadonlyMap<string, readonly Rule[]>,
): string[] {
  if (!chains.has(TRANSLATING_CHAIN)) return [];
  if (!chains.has(DEPARTURE_CHAIN))
    return [`table ${GATEWAY_TABLE} translates, and has no chain ${DEPARTURE_CHAIN} that drops the rest`];
  const rules = byChain.get(DEPARTURE_CHAIN) ?? [];
  const end = rules.at(-1);
  const drops =
    end?.expr.some((one) => 'drop' in one) === true && !end.expr.some(({ match }) => match !== undefined);
  const open = rules.find(
    ({ expr }) => expr.some((one) => 'accept' in one || 'return' in one) && !isOtherLink(expr),
  );
  return [
    ...(drops ? [] : [`chain ${DEPARTURE_CHAIN} does not end with a rule that drops all the rest`]),
    ...(open === undefined
      ? []
      : [`chain ${DEPARTURE_CHAIN} lets packets pass unseen: ${JSON.stringify(open.expr)}`]),
  ];
}

/** `oifname != LINK return`: what does not go into a tunnel. */
const isOtherLink = (expr: readonly Expression[]): boolean =>
  expr.some(({ match }) => match?.op === '!=' && match.left.meta?.key === 'oifname');

function rangeOf(address: Address | undefined): Range | undefined {
  if (address === undefined) return undefined;
  if (typeof address === 'string') return ranged(address, address.includes(':') ? 128 : 32);
  if (address.elem !== undefined) return rangeOf(address.elem.val);
  if (address.prefix !== undefined) return ranged(address.prefix.addr, address.prefix.len);
  const [low, high] = (address.range ?? []).map(numberOf);
  if (low === undefined || high === undefined) return undefined;
  return { text: address.range?.join('-') ?? '', family: low.family, low: low.value, high: high.value };
}

function ranged(addr: string, len: number): Range | undefined {
  const number = numberOf(addr);
  if (number === undefined) return undefined;
  const { family, value } = number;
  const rest = BigInt((family === 4 ? 32 : 128) - len);
  const low = (value >> rest) << rest;
  return { text: `${addr}/${len}`, family, low, high: low + (1n << rest) - 1n };
}

function numberOf(text: string): { family: 4 | 6; value: bigint } | undefined {
  if (!text.includes(':')) {
    const parts = text.split('.').map(Number);
    if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part < 256))) return undefined;
    return { family: 4, value: parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n) };
  }
  const [head = '', tail = ''] = text.split('::');
  const words = (side: string): string[] => (side === '' ? [] : side.split(':'));
  const missing = text.includes('::') ? 8 - words(head).length - words(tail).length : 0;
  const all = [...words(head), ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...words(tail)];
  if (all.length !== 8 || all.some((word) => !/^[\da-f]{1,4}$/iu.test(word))) return undefined;
  return { family: 6, value: all.reduce((sum, word) => (sum << 16n) + BigInt(`0x${word}`), 0n) };
}
