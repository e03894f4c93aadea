import { Controller } from '../../kube/controller.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { DialTarget } from '../ports.ts';
import type { KeeperOptions } from './options.ts';
import { targetsOf } from './targets.ts';
import { hasPeering } from './use.ts';

const TARGETS = 'targets';
/** Between two looks at all clusters: the first change is served at once, those of a burst together. */
const INTERVAL_MS = 50;

/** Works out whom to dial when something has changed, once for changes that come together. */
export class Dialler {
  readonly #options: KeeperOptions;
  readonly #controller: Controller;
  readonly #changed: (name: string) => void;
  #targets: readonly DialTarget[] = [];
  #lookedAt = -Infinity;

  /** Calls back with the name of each ForeignCluster that is dialled from now on, or no more. */
  constructor(options: KeeperOptions, changed: (name: string) => void) {
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
