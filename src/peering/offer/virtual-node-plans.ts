import { createHash } from 'node:crypto';

import type { VirtualNodeShape } from '../../api/acceptance-policy.ts';
import {
  addTo,
  amountOf,
  type Amounts,
  BASIC_RESOURCES,
  formatAmounts,
  isCounted,
  isOfNodes,
  MILLI,
  parseAmounts,
  roundDown,
  stepOf,
  type Sums,
} from '../../api/amounts.ts';
import type { NodeShape, Offer } from '../../api/offer.ts';
import type { VirtualNodeSpec } from '../../api/virtual-node.ts';
import type { ResourceList } from '../../api/wire.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { compareSizes, nodeSizes } from './node-sizes.ts';
import { roomShown } from './room.ts';

/** One VirtualNode to be made of an offer that was accepted. */
export interface VirtualNodePlan extends Pick<
  VirtualNodeSpec,
  'resources' | 'nodeSizes' | 'declaredFeatures'
> {
  /** Empty for Aggregate; else a DNS label of at most ten characters, to be put behind a dash. */
  suffix: string;
  labels: Record<string, string>;
}

export const DEFAULT_MAX_NODES = 16;

/**
 * What VirtualNodes to make of the accepted part of an offer.
 *
 * Aggregate: one with all of it. Its architecture and system are those of most nodes over there, and its other
 * labels those that all of them share, since a pod may land on any. It also tells how large those nodes are.
 *
 * PerNode: one for each node over there, the largest `maxNodes` of them, none larger than its node; where less was
 * accepted than they hold, all shrink alike. A node's name comes from its kind and its place among its kind by size,
 * so neither other kinds nor smaller nodes change it.
 *
 * Where a pod costs more over there than home counts, the nodes show less (room.ts).
 * Persistent `storage` is not among a Node's resources.
 */
export function virtualNodePlans(
  offer: Offer,
  resources: ResourceList,
  shape: VirtualNodeShape = 'Aggregate',
  maxNodes: number = DEFAULT_MAX_NODES,
): VirtualNodePlan[] {
  const accepted = new Map(
    [...parseAmounts(resources)].filter(
      ([resource, milli]) => isTold(resource, milli) && isOfNodes(resource),
    ),
  );
  return shape === 'PerNode'
    ? perNode(offer, accepted, maxNodes)
    : [aggregate(offer, roomShown(accepted, offer))];
}

/** A Node says how much it has of the basic resources, zero too; of others only what there is. */
const isTold = (resource: string, milli: bigint): boolean => milli > 0n || BASIC_RESOURCES.includes(resource);

function aggregate(offer: Offer, accepted: Amounts): VirtualNodePlan {
  const platform = most(
    offer.shapes,
    ({ architecture, operatingSystem }) => `${operatingSystem}/${architecture}`,
  );
  const kind = offer.shapes.find((one) => `${one.operatingSystem}/${one.architecture}` === platform);
  const labels = { ...commonLabels(offer.shapes), ...offer.labels, ...(kind && platformLabels(kind)) };
  return { ...planOf('', accepted, { offer, labels }), nodeSizes: nodeSizes(offer) };
}

const platformLabels = ({ architecture, operatingSystem }: NodeShape): Record<string, string> => ({
  'kubernetes.io/arch': architecture,
  'kubernetes.io/os': operatingSystem,
});

/** The key that stands for most nodes; of equals the first by name. */
function most(shapes: readonly NodeShape[], keyOf: (shape: NodeShape) => string): string | undefined {
  const counts = new Map<string, number>();
  for (const shape of shapes) counts.set(keyOf(shape), (counts.get(keyOf(shape)) ?? 0) + shape.count);
  return [...counts].toSorted(([a, many], [b, more]) => more - many || (a < b ? -1 : 1))[0]?.[0];
}

function commonLabels([first, ...others]: readonly NodeShape[]): Record<string, string> {
  const shared = Object.entries(first?.labels ?? {}).filter(([key, value]) =>
    others.every(({ labels = {} }) => Object.hasOwn(labels, key) && labels[key] === value),
  );
  return Object.fromEntries(shared);
}

function planOf(
  suffix: string,
  amounts: Amounts,
  { offer, labels }: { offer: Offer; labels: Record<string, string> },
): VirtualNodePlan {
  const { declaredFeatures } = offer;
  return {
    suffix,
    resources: formatAmounts(amounts),
    labels,
    ...(declaredFeatures !== undefined && { declaredFeatures }),
  };
}

interface Seat {
  suffix: string;
  shape: NodeShape;
  amounts: Amounts;
}

function perNode(offer: Offer, accepted: Amounts, maxNodes: number): VirtualNodePlan[] {
  const seats = seatsOf(offer.shapes, maxNodes);
  const portions = seats.map((): Sums => new Map());
  for (const [resource, available] of accepted) {
    const asked = seats.map(({ amounts }) => amountOf(amounts, resource));
    const given = scaled(asked, available, isCounted(resource) ? MILLI : stepOf(resource));
    for (const [index, milli] of given.entries()) {
      if (isTold(resource, milli)) portions[index]?.set(resource, milli);
    }
  }
  return seats.map(({ suffix, shape }, index) =>
    planOf(suffix, roomShown(portions[index] ?? new Map(), offer), {
      offer,
      labels: { ...offer.labels, ...shape.labels, ...platformLabels(shape) },
    }),
  );
}

/** The largest nodes, each under its name; in the order of the names. */
function seatsOf(shapes: readonly NodeShape[], maxNodes: number): Seat[] {
  const largest = shapes
    .map((shape) => ({ shape, kind: kindOf(shape), amounts: parseAmounts(shape.resources) }))
    .toSorted((a, b) => compareSizes(a.amounts, b.amounts) || (a.kind < b.kind ? -1 : 1));
  const seats: Seat[] = [];
  const placesOf = new Map<string, number>();
  for (const { shape, kind, amounts } of largest) {
    for (let node = 0; node < shape.count && seats.length < maxNodes; node++) {
      const place = (placesOf.get(kind) ?? 0) + 1;
      placesOf.set(kind, place);
      seats.push({ suffix: `${kind}-${place}`, shape, amounts });
    }
  }
  return seats.toSorted((a, b) => (a.suffix < b.suffix ? -1 : 1));
}

/** Six hexadecimal digits of what a scheduler can tell nodes apart by, besides their size. */
function kindOf({ architecture, operatingSystem, labels = {} }: NodeShape): string {
  const text = canonicalText([architecture, operatingSystem, labels]);
  return createHash('sha256').update(text).digest('hex').slice(0, 6);
}

/**
 * Shares of `available` in proportion to what is asked, none above what it asks, in whole steps, together at most
 * `available`. The running sum is what is rounded, so that the last device is given to one of them and not lost.
 */
function scaled(asked: readonly bigint[], available: bigint, step: bigint): bigint[] {
  const sum = asked.reduce((total, amount) => total + amount, 0n);
  if (sum <= available) return [...asked];
  const sums: Sums = new Map();
  return asked.map((amount) => {
    const before = amountOf(sums, 'asked');
    addTo(sums, new Map([['asked', amount]]));
    const upTo = (part: bigint): bigint => roundDown((part * available) / sum, step);
    const portion = upTo(before + amount) - upTo(before);
    return portion > amount ? amount : portion;
  });
}
