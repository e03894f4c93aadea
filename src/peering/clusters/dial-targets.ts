import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import type { PeerSelector } from '../../api/peer-selector.ts';
import { Controller } from '../../kube/controller.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { type CandidateFacts, couldMatch } from '../policy/match.ts';
import type { DialTarget, LinkView } from '../ports.ts';
import { hasPeering, idOf, isDeleting, isDiscovered, primaryOf } from './foreign-cluster.ts';
import type { Policies } from './intent.ts';
import type { ReconcilerOptions } from './options.ts';
import { chosenHere, endpointsOf, foundBy } from './sightings.ts';

export interface TargetInputs {
  clusters: Iterable<ForeignCluster>;
  /** Our own ClusterID. */
  own: string;
  policies: Policies;
  view: (clusterID: string) => LinkView | undefined;
  /** Whether there is a peering with it, in any state, in either direction. */
  isPeered: (clusterID: string) => boolean;
  now: number;
}

/** Whom to dial: each cluster with which a peering could come about, once, however many objects there are about it. */
export function targetsOf(inputs: TargetInputs): DialTarget[] {
  const targets: DialTarget[] = [];
  for (const [clusterID, clusters] of Map.groupBy(inputs.clusters, idOf)) {
    const target = clusterID === undefined ? undefined : targetOf(clusterID, clusters, inputs);
    if (target !== undefined) targets.push(target);
    if (clusterID === undefined) targets.push(...clusters.flatMap((cluster) => strangerOf(cluster, inputs)));
  }
  return targets.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function targetOf(
  clusterID: string,
  clusters: readonly ForeignCluster[],
  inputs: TargetInputs,
): DialTarget | undefined {
  const primary = primaryOf(clusters);
  if (primary === undefined || clusterID === inputs.own) return undefined;
  const { now } = inputs;
  const view = inputs.view(clusterID);
  const isPeered = inputs.isPeered(clusterID);
  const facts = { clusterID, labels: primary.metadata.labels ?? {}, foundBy: foundBy(clusters, view, now) };
  if (!isPeered && !isPromising(primary, facts, inputs.policies)) return undefined;
  const endpoints = endpointsOf(clusters, { view, now, keep: isPeered || view !== undefined });
  if (endpoints.length === 0) return undefined;
  return { name: primary.metadata.name, clusterID, endpoints, chosenHere: chosenHere(clusters, now) };
}

/** For an object without a wanted identity: the endpoint that a person has named, to learn who answers there. */
function strangerOf(cluster: ForeignCluster, { now }: TargetInputs): DialTarget[] {
  const endpoints = isDeleting(cluster) ? [] : endpointsOf([cluster], { view: undefined, now, keep: false });
  if (endpoints.length === 0) return [];
  return [{ name: cluster.metadata.name, endpoints, chosenHere: chosenHere([cluster], now) }];
}

/** Whether a peering could come of a link. A cluster that a person named is dialled at least once, to prove its identity. */
function isPromising(primary: ForeignCluster, facts: CandidateFacts, policies: Policies): boolean {
  if (isDeleting(primary)) return false;
  const { outgoing = 'Auto', incoming = 'Auto' } = primary.spec ?? {};
  if (outgoing === 'Enabled' || incoming === 'Enabled') return true;
  const isOff = outgoing === 'Disabled' && incoming === 'Disabled';
  if (!isDiscovered(primary)) return !isOff || primary.status?.clusterID === undefined;
  return (
    (outgoing === 'Auto' && asksByItself(policies.acceptance, facts)) ||
    (incoming === 'Auto' && meansAny(policies.sharing, facts))
  );
}

function asksByItself(policies: Policies['acceptance'], facts: CandidateFacts): boolean {
  for (const policy of policies)
    if (policy.spec.approval === 'Automatic' && meansAny([policy], facts)) return true;
  return false;
}

function meansAny(policies: Iterable<{ spec: { peers: PeerSelector } }>, facts: CandidateFacts): boolean {
  for (const { spec } of policies) if (couldMatch(spec.peers, facts)) return true;
  return false;
}

const TARGETS = 'targets';
/** Time between two looks at all clusters: the first change is served at once, those of a burst together. */
const INTERVAL_MS = 50;

/** Works out whom to dial after changes; changes that come together are served together. */
export class DialTargets {
  readonly #options: ReconcilerOptions;
  readonly #controller: Controller;
  readonly #changed: (name: string) => void;
  #targets: readonly DialTarget[] = [];
  #lookedAt = -Infinity;

  /** @param changed called with the name of each ForeignCluster that is dialled from now on, or no longer */
  constructor(options: ReconcilerOptions, changed: (name: string) => void) {
    const { clock, log, metrics } = options;
    this.#options = options;
    this.#changed = changed;
    this.#controller = new Controller({
      name: 'dial targets',
      concurrency: 1,
      reconcile: async () => this.#reconcile(),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  components(): Component[] {
    return [this.#controller];
  }

  refresh(): void {
    const sinceMs = this.#options.clock.monotonic() - this.#lookedAt;
    this.#controller.addAfter(TARGETS, INTERVAL_MS - sinceMs);
  }

  dials(name: string): boolean {
    return this.#targets.some((target) => target.name === name);
  }

  async #reconcile(): Promise<void> {
    const { clusters, own, links, clock, policies } = this.#options;
    this.#lookedAt = clock.monotonic();
    const before = this.#targets;
    const targets = targetsOf({
      clusters: clusters.list(),
      own,
      policies: policies(),
      view: (clusterID) => links().view(clusterID),
      isPeered: (clusterID) => hasPeering(this.#options, clusterID),
      now: clock.now(),
    });
    if (deepEqual(before, targets)) return;
    this.#targets = targets;
    links().setTargets(targets);
    for (const name of namesOf(before).symmetricDifference(namesOf(targets))) this.#changed(name);
    await Promise.resolve();
  }
}

const namesOf = (targets: readonly DialTarget[]): Set<string> => new Set(targets.map(({ name }) => name));
