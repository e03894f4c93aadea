import type { Amounts } from '../../api/amounts.ts';
import { podRequests } from '../../api/pod-requests.ts';
import { type Cost, costOf, formatCost, type Prices } from '../../api/prices.ts';
import type { Pod } from '../../api/wire.ts';
import { hasCode } from '../../lib/errors.ts';
import type { SelectedNode } from './avoid.ts';

/** Virtual nodes on which a pod costs the same. */
export interface Rank {
  cost: Cost;
  names: string[];
}

interface Comparison {
  /** The cheapest first. */
  ranks: Rank[];
  /** What cannot be compared with these, and comes after them; as people read it. */
  others: string[];
}

/**
 * Those on which the pod costs the same together. Two currencies cannot be compared: of several, the one in which most ask counts,
 * and none where as many ask in another. What costs nothing does so in every currency. Pure.
 */
export function ranked(pod: Pod, nodes: readonly SelectedNode[]): Comparison {
  const requests = podRequests(pod);
  const all = nodes.map(({ name, prices = {} }) => ({ name, cost: readCost(requests, prices) }));
  const readable = all.flatMap(({ name, cost }) => (cost === undefined ? [] : [{ name, cost }]));
  const main = mainCurrency(readable);
  const [compared, foreign] = [true, false].map((isMain) =>
    together(readable.filter(({ cost: { currency = main } }) => (currency === main) === isMain)),
  );
  return {
    ranks: compared ?? [],
    others: [
      ...(foreign ?? []).flatMap((rank) => textsOf(rank).map((text) => `${text}, in another currency`)),
      ...all
        .filter(({ cost }) => cost === undefined)
        .map(({ name }) => `${name}: prices that nobody can add up`),
    ],
  };
}

/** Undefined: nobody asks anything, or no currency is asked for by more than any other one. */
function mainCurrency(all: readonly { cost: Cost }[]): string | undefined {
  const asked = all.flatMap(({ cost: { currency } }) => currency ?? []);
  const [first, second] = [...Map.groupBy(asked, (currency) => currency)]
    .map(([currency, { length }]) => ({ currency, length }))
    .toSorted((a, b) => b.length - a.length);
  return first !== undefined && first.length > (second?.length ?? 0) ? first.currency : undefined;
}

function together(all: readonly { name: string; cost: Cost }[]): Rank[] {
  const groups = Map.groupBy(all, ({ cost }) => `${cost.currency} ${cost.parts}`);
  return [...groups.values()]
    .flatMap((group) => {
      const names = group.map(({ name }) => name).toSorted();
      return group[0] === undefined ? [] : [{ cost: group[0].cost, names }];
    })
    .toSorted((a, b) => compare(a.cost.parts, b.cost.parts) || (String(a.names) < String(b.names) ? -1 : 1));
}

const compare = (a: bigint, b: bigint): number => (a === b ? 0 : a < b ? -1 : 1);

/** Undefined: it asks in several currencies, or what nobody can read; then it cannot be compared. */
function readCost(requests: Amounts, prices: Prices): Cost | undefined {
  try {
    return costOf(requests, prices);
  } catch (error) {
    if (hasCode(error, 'Invalid')) return undefined;
    throw error;
  }
}

/** So many are named. */
const MOST_NAMED = 16;

const textsOf = ({ cost, names }: Rank): string[] => names.map((name) => `${name}: ${formatCost(cost)}`);

/** What was compared, as people read it. */
export function rankMark({ ranks, others }: Comparison): string {
  const all = [...ranks.flatMap(textsOf), ...others];
  const more = all.length > MOST_NAMED ? [`${all.length - MOST_NAMED} more`] : [];
  return [...all.slice(0, MOST_NAMED), ...more].join('; ');
}
