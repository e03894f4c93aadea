import type { Amounts } from '../../api/amounts.ts';
import { podRequests } from '../../api/pod-requests.ts';
import { type Cost, costOf, currenciesFor, formatCost, type Prices } from '../../api/prices.ts';
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
  /** In which they ask; several, and no ranks: none of them counts. */
  currencies: string[];
}

/**
 * Those on which the pod costs the same together. Two currencies cannot be compared: of several, the one in which most ask counts,
 * and none where as many ask in another. What costs nothing does so in every currency. Pure.
 */
export function ranked(pod: Pod, nodes: readonly SelectedNode[]): Comparison {
  const requests = podRequests(pod);
  const all = nodes.map(({ name, prices = {} }) => ({ name, prices, cost: readCost(requests, prices) }));
  const readable = all.flatMap(({ name, cost }) => (cost === undefined ? [] : [{ name, cost }]));
  const main = mainCurrency(readable);
  const [compared, foreign] = [true, false].map((isMain) =>
    together(readable.filter(({ cost: { currency = main } }) => (currency === main) === isMain)),
  );
  const isTie = main === undefined;
  const remark = compared?.length === 0 ? '' : isTie ? ', not compared' : ', in another currency';
  return {
    currencies: [...new Set(readable.flatMap(({ cost: { currency } }) => currency ?? []))].toSorted(),
    ranks: compared ?? [],
    others: [
      // By name: an order by figures would look like a rank.
      ...(foreign ?? [])
        .flatMap(textsOf)
        .toSorted()
        .map((text) => `${text}${remark}`),
      ...all
        .filter(({ cost }) => cost === undefined)
        .map(({ name, prices }) => `${name}: ${whyNotReadable(requests, prices)}`),
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

/** Of one whose cost is undefined. */
function whyNotReadable(requests: Amounts, prices: Prices): string {
  try {
    const currencies = currenciesFor(requests, prices);
    const many = currencies.length === 2 ? 'two' : 'several';
    return `asks in ${many} currencies (${currencies.join(', ')})`;
  } catch (error) {
    if (hasCode(error, 'Invalid')) return 'asks a price that cannot be read';
    throw error;
  }
}

/** So many are named. */
const MOST_NAMED = 16;

const textsOf = ({ cost, names }: Rank): string[] => names.map((name) => `${name}: ${formatCost(cost)}`);

/** What was compared, or why nothing was, as people read it. */
export function rankMark({ ranks, others, currencies }: Comparison): string {
  const all = [...ranks.flatMap(textsOf), ...others];
  const more = all.length > MOST_NAMED ? [`${all.length - MOST_NAMED} more`] : [];
  const said = [...all.slice(0, MOST_NAMED), ...more].join('; ');
  if (ranks.length > 0) return said;
  return currencies.length > 1 ? `not compared: ${currencies.join(', ')} (${said})` : `not compared: ${said}`;
}
