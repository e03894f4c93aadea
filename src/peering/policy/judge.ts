import type { AcceptancePolicy, AcceptancePolicySpec } from '../../api/acceptance-policy.ts';
import { ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import { amountOf, type Amounts, formatAmount, MILLI, parseNamed, roundDown } from '../../api/amounts.ts';
import type { Offer } from '../../api/offer.ts';
import { compareDecimals, currencyOf } from '../../api/prices.ts';
import type { ResourceList } from '../../api/wire.ts';

type OfferVerdict = { accepted: true; resources: ResourceList } | OfferRejection;

interface OfferRejection {
  accepted: false;
  reason: (typeof ADVERTISEMENT_REASONS)['tooLittle' | 'tooDear' | 'labelMissing'];
  message: string;
}

/**
 * Whether the policy takes this offer, and how much of it. Of a resource with a ceiling the smaller of the two is
 * taken, of the others all that is offered. A resource whose ceiling is zero stays in the list as `0`, so that
 * whoever bounds by the list bounds it too. The offer is checked already (offer/check.ts); throws Invalid for
 * quantities in the policy that cannot be read.
 */
export function judge(offer: Offer, { spec }: AcceptancePolicy): OfferVerdict {
  const offered = parseNamed('resources of the offer', offer.resources);
  const refusal = missingLabel(offer, spec) ?? tooLittle(offered, spec) ?? tooDear(offer, spec);
  if (refusal !== undefined) return refusal;
  const ceilings = parseNamed('ceilings of the policy', spec.ceilings ?? {});
  const resources = Object.entries(offer.resources).map(([resource, amount]): [string, string] => {
    const ceiling = ceilings.get(resource);
    if (ceiling === undefined || ceiling >= amountOf(offered, resource)) return [resource, amount];
    // Thousandths are a matter of CPU; of anything else a contract names whole units.
    return [resource, formatAmount(resource, resource === 'cpu' ? ceiling : roundDown(ceiling, MILLI))];
  });
  return { accepted: true, resources: Object.fromEntries(resources) };
}

function missingLabel(
  { labels }: Offer,
  { requiredLabels = {} }: AcceptancePolicySpec,
): OfferRejection | undefined {
  for (const [key, value] of Object.entries(requiredLabels)) {
    const offered = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (offered === value) continue;
    const has = offered === undefined ? 'has no such label' : `says "${offered}"`;
    return refuse('labelMissing', `label ${key}="${value}" is required, the offer ${has}`);
  }
  return undefined;
}

function tooLittle(offered: Amounts, { minimum = {} }: AcceptancePolicySpec): OfferRejection | undefined {
  for (const [resource, least] of parseNamed('minimum of the policy', minimum)) {
    const amount = amountOf(offered, resource);
    if (amount >= least) continue;
    const figures = `${formatAmount(resource, amount)} offered, at least ${formatAmount(resource, least)} wanted`;
    return refuse('tooLittle', `${resource}: ${figures}`);
  }
  return undefined;
}

/** Two currencies (upper and lower case are one) cannot be compared, so a price in another one is above any maximum. */
function tooDear({ prices }: Offer, { maxPrices = {} }: AcceptancePolicySpec): OfferRejection | undefined {
  for (const [resource, most] of Object.entries(maxPrices)) {
    const asked = Object.hasOwn(prices, resource) ? prices[resource] : undefined;
    if (asked === undefined || compareDecimals(asked.amount, '0') === 0) continue;
    const isComparable = currencyOf(asked) === currencyOf(most);
    if (isComparable && compareDecimals(asked.amount, most.amount) <= 0) continue;
    const figures = `${asked.amount} ${currencyOf(asked)} asked, at most ${most.amount} ${currencyOf(most)} wanted`;
    return refuse('tooDear', `${resource}: ${figures}${isComparable ? '' : ', and currencies differ'}`);
  }
  return undefined;
}

const refuse = (reason: 'tooLittle' | 'tooDear' | 'labelMissing', message: string): OfferRejection => ({
  accepted: false,
  reason: ADVERTISEMENT_REASONS[reason],
  message,
});
