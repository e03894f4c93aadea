import {
  addTo,
  amountOf,
  type Amounts,
  atMost,
  formatAmounts,
  isCounted,
  mostOf,
  roundDown,
  roundUp,
  stepOf,
  STORAGE,
  type Sums,
} from '../../api/amounts.ts';
import { defaultRequestsOf } from '../../api/default-requests.ts';
import { MAX_LABELS, MAX_RESOURCES, OFFER_LIMITS } from '../../api/limits.ts';
import type { Offer, Price, ServiceClasses } from '../../api/offer.ts';
import type { SharingPolicy, SharingPolicySpec } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { freeInAll, freeOnNode, lendableResources, lendingNodes, limitsOf, type Promises } from './free.ts';
import { boundedBy, groupShares, type NodeShare } from './node-shapes.ts';
import { lentPriorities } from './priority-classes.ts';
import type { Stock, StockNode } from './stock.ts';
import {
  className,
  feature,
  image as imageCheck,
  offerableLabels,
  onlyValid,
  PLACE_LABELS,
  prices as pricesCheck,
  storageClass,
  word,
} from './terms.ts';

/** An offer without what makes it one: number, time, and whom it binds. */
export type OfferTerms = Omit<
  Offer,
  'provider' | 'consumer' | 'generation' | 'issued' | 'expires' | 'namespaces'
>;

export interface OfferFor {
  /** ClusterID of the one who asks. */
  consumer: string;
  /** To every peer that has a contract; what the consumer itself was promised counts as free for it. */
  promised: Promises;
  /** Of the policy's runtime class, per pod; undefined: none, or no such class. */
  podOverhead?: ResourceList | undefined;
}

const DEFAULT_SHARE_PERCENT = 50;
const DEFAULT_KEEP_SECONDS = 86_400;

/**
 * What this policy lends to one peer out of what there is: its share of what is free, within the policy's limits,
 * rounded down, and never more than the shapes of the nodes behind it hold. Whatever an offer must not contain (see
 * offer/check.ts) is left out. Persistent `storage` is offered as the policy limits it: no node counts it, and the
 * capacity of storage drivers is not asked. Throws Invalid for quantities of the policy that cannot be read.
 */
export function computeOffer(
  stock: Stock,
  policy: SharingPolicy,
  { consumer, promised, podOverhead = {} }: OfferFor,
): OfferTerms {
  const { spec } = policy;
  const nodes = lendingNodes(stock, spec);
  // Also while it is away: it would have to agree to each change when it comes back, and nobody else gets that room.
  const devices = stock.devices.get(consumer) ?? [];
  const names = lendableResources([...nodes, ...devices], spec);
  const limits = limitsOf(policy);
  const rule = { names, limits, percent: sharePercent(spec) };
  // What the consumer lends us itself is there for it, and is not ours to share out.
  const whole = { names, limits: new Map(), percent: 100n };
  const shares = [
    ...nodes.flatMap((node) => shareOfNode(node, { ...rule, consumer, spec })),
    ...devices.flatMap((node) => shareOfNode(node, { ...whole, consumer, spec })),
  ];
  const { shapes, held } = groupShares(shares.map(({ share }) => share));
  const free = freeInAll(nodes, stock, { consumer, promised });
  const portion = portionOf(free, rule, roundDown);
  for (const node of devices) addTo(portion, portionOf(freeOnNode(node, consumer), whole, roundDown));
  const resources = boundedBy(portion, held);
  const storage = spec.withhold?.includes(STORAGE) === true ? 0n : storageOf(limits);
  if (storage > 0n) resources.set(STORAGE, storage);
  const offered = shares.map(({ node }) => node);
  return {
    resources: formatAmounts(withoutIdle(resources)),
    shapes,
    classes: classesOf(stock, spec),
    labels: offerableLabels(spec.labels ?? {}, MAX_LABELS),
    images: spec.shareImages === true ? imagesOf(offered) : [],
    prices: pricesOf(spec.prices ?? {}),
    podSecurity: spec.podSecurity ?? 'baseline',
    keepForSeconds: spec.keepForSeconds ?? DEFAULT_KEEP_SECONDS,
    defaultRequests: defaultRequestsOf(spec.defaultRequests),
    ...(Object.keys(podOverhead).length > 0 && { podOverhead }),
    ...abilitiesOf(offered),
  };
}

/** What all of the nodes can do. */
function abilitiesOf(
  nodes: readonly StockNode[],
): Pick<OfferTerms, 'kubernetesVersion' | 'declaredFeatures'> {
  const version = lowestVersion(nodes);
  const features = commonFeatures(nodes);
  return {
    ...(version !== undefined && { kubernetesVersion: version }),
    ...(features.length > 0 && { declaredFeatures: features }),
  };
}

function sharePercent({ sharePercent: percent = DEFAULT_SHARE_PERCENT }: SharingPolicySpec): bigint {
  // A policy that says nonsense lends nothing.
  return Number.isFinite(percent) ? BigInt(Math.floor(Math.min(Math.max(percent, 0), 100))) : 0n;
}

interface ShareRule {
  names: readonly string[];
  limits: Amounts;
  percent: bigint;
}

/** The share, in steps, within the limits. */
function portionOf(free: Amounts, { names, limits, percent }: ShareRule, round: typeof roundDown): Sums {
  return new Map(
    names.map((name) => {
      const [step, all] = [stepOf(name), amountOf(free, name)];
      const portion = round((all * percent + (round === roundUp ? 99n : 0n)) / 100n, step);
      const most = atMost(limits.get(name) ?? mostOf(name), mostOf(name));
      return [name, atMost(atMost(portion, roundDown(all, step)), roundDown(most, step))];
    }),
  );
}

/**
 * The share of one node; none for a node on which no pod would fit. Half of one device is none, but half of two
 * devices on two nodes is one, on either: so on a node the share of what is counted in pieces is rounded up.
 */
function shareOfNode(
  node: StockNode,
  { consumer, spec, ...rule }: ShareRule & { consumer: string; spec: SharingPolicySpec },
): { node: StockNode; share: NodeShare }[] {
  const free = freeOnNode(node, consumer);
  const pieces = { ...rule, names: rule.names.filter(isCounted) };
  const measures = { ...rule, names: rule.names.filter((name) => !isCounted(name)) };
  const amounts = new Map(
    [...portionOf(free, pieces, roundUp), ...portionOf(free, measures, roundDown)].filter(
      ([, milli]) => milli > 0n,
    ),
  );
  const { architecture, operatingSystem } = node;
  const isUsable = ['cpu', 'memory', 'pods'].every((name) => amounts.has(name) || !rule.names.includes(name));
  if (amounts.size === 0 || !isUsable) return [];
  if (onlyValid([architecture, operatingSystem], word).length < 2) return [];
  return [{ node, share: { architecture, operatingSystem, labels: shownLabels(node, spec), amounts } }];
}

function shownLabels({ labels }: StockNode, { nodeLabels = [] }: SharingPolicySpec): Record<string, string> {
  const shown = new Set([...PLACE_LABELS, ...nodeLabels]);
  const kept = Object.entries(labels).filter(([key]) => shown.has(key));
  return offerableLabels(Object.fromEntries(kept), OFFER_LIMITS.shapeLabels);
}

const storageOf = (limits: Amounts): bigint =>
  roundDown(atMost(amountOf(limits, STORAGE), mostOf(STORAGE)), stepOf(STORAGE));

/** Special resources of which nothing is free are not told; the basic ones are, as zero. */
function withoutIdle(amounts: Amounts): Amounts {
  return new Map(
    [...amounts].filter(
      ([name, milli]) => milli > 0n || !(name.includes('/') || name.startsWith('hugepages-')),
    ),
  );
}

/** Only what the policy names: a class is a service of its own, and may cost money. */
function classesOf(stock: Stock, spec: SharingPolicySpec): ServiceClasses {
  const named = (allowed: readonly string[] | undefined, name: string): boolean =>
    allowed?.includes(name) === true;
  const storage = onlyValid(
    stock.storageClasses.filter(({ name }) => named(spec.storageClasses, name)),
    storageClass,
  ).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const ingress = onlyValid(
    stock.ingressClasses.filter((name) => named(spec.ingressClasses, name)),
    className,
  );
  // No object tells of load-balancer classes; the policy's word is all there is.
  const loadBalancer = onlyValid(new Set(spec.loadBalancerClasses ?? []), className);
  const priority = lentPriorities(stock.priorityClasses, spec);
  return {
    ...(priority.length > 0 && { priority }),
    ...(storage.length > 0 && { storage: storage.slice(0, OFFER_LIMITS.storageClasses) }),
    ...(ingress.length > 0 && { ingress: ingress.toSorted().slice(0, OFFER_LIMITS.ingressClasses) }),
    ...(loadBalancer.length > 0 && {
      loadBalancer: loadBalancer.toSorted().slice(0, OFFER_LIMITS.loadBalancerClasses),
    }),
  };
}

function pricesOf(prices: Readonly<Record<string, Price>>): Record<string, Price> {
  const valid = onlyValid(Object.entries(prices), (entry, path) =>
    pricesCheck(Object.fromEntries([entry as never]), path),
  );
  return Object.fromEntries(
    valid
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, MAX_RESOURCES)
      .map(([name, { amount, currency }]) => [name, { amount, currency }]),
  );
}

/** By tag, those on most nodes first chosen; a digest names what a tag names already. */
function imagesOf(nodes: readonly StockNode[]): string[] {
  const counts = new Map<string, number>();
  for (const image of nodes.flatMap(({ images }) => images.filter((name) => !name.includes('@')))) {
    counts.set(image, (counts.get(image) ?? 0) + 1);
  }
  const ranked = onlyValid(counts, (entry, path) => imageCheck((entry as [string, number])[0], path));
  return ranked
    .toSorted(([a, many], [b, more]) => more - many || (a < b ? -1 : 1))
    .slice(0, OFFER_LIMITS.images)
    .map(([image]) => image)
    .toSorted();
}

function commonFeatures(nodes: readonly StockNode[]): string[] {
  const [first, ...others] = nodes.map(({ declaredFeatures }) => new Set(declaredFeatures));
  const common = [...(first ?? [])].filter((feature) => others.every((declared) => declared.has(feature)));
  return onlyValid(common, feature).toSorted().slice(0, OFFER_LIMITS.declaredFeatures);
}

/** Of the kubelets: what the oldest of them can do is what a pod may rely on. */
function lowestVersion(nodes: readonly StockNode[]): string | undefined {
  const versions = nodes.flatMap(({ kubeletVersion }) => {
    const [, text] = /^v?(\d{1,4}\.\d{1,4}\.\d{1,4})/u.exec(kubeletVersion) ?? [];
    return text === undefined ? [] : [text];
  });
  const rank = (version: string): number =>
    version.split('.').reduce((sum, part) => sum * 10_000 + Number(part), 0);
  return versions.toSorted((a, b) => rank(a) - rank(b))[0];
}
