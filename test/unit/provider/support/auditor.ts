import { LABEL_HOME_UID } from '../../../../src/api/names.ts';
import { isEndAwaited } from '../../../../src/api/pod.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { AnyObject, Change } from '../../../support/fake-api/storage.ts';
import type { ForeignKubelet } from './foreign-kubelet.ts';

const TERMINAL = new Set(['Succeeded', 'Failed']);
const phaseOf = (pod: AnyObject | undefined): string => {
  const phase = pod?.status?.['phase'];
  return typeof phase === 'string' ? phase : 'Pending';
};

/** Every write that an agent may make, whatever happens (invariant 6). */
const ALLOWED = {
  home: [
    /^PUT \/api\/v1\/namespaces\/shop\/pods\/[^/]+\/status/u,
    /^DELETE \/api\/v1\/namespaces\/shop\/pods\//u,
    /^(POST|PUT) \/api\/v1\/nodes/u,
    /^PUT \/apis\/tributary\.dev\/v1alpha1\/virtualnodes\/rome\/status/u,
    /^POST \/api\/v1\/namespaces\/shop\/serviceaccounts\/[^/]+\/token/u,
    /^(POST|PUT) \/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases(\/rome)?$/u,
  ],
  foreign: [
    /^(POST|PUT|PATCH|DELETE) \/api\/v1\/namespaces\/tenant\/(pods|configmaps|secrets)/u,
    /^PUT \/apis\/coordination\.k8s\.io\/v1\/namespaces\/tenant\/leases\/tributary-home$/u,
  ],
};

/**
 * Watches both clusters from outside and holds the agents to the invariants: what must never happen is noted the
 * moment it does, what must hold in the end is told by `differences`.
 */
export class Auditor {
  readonly violations: string[] = [];
  readonly #home: FakeApi;
  readonly #foreign: FakeApi;
  readonly #kubelet: ForeignKubelet;
  /** Home pods that are to end as lost, by UID: their bodies were taken away over there. */
  readonly lost: Set<string> = new Set();
  /** Those that the guardian over there has made anew, by UID: they have run more than once. */
  readonly remade: Set<string> = new Set();

  constructor(home: FakeApi, foreign: FakeApi, kubelet: ForeignKubelet) {
    this.#home = home;
    this.#foreign = foreign;
    this.#kubelet = kubelet;
    home.storage.subscribe((change) => this.#onHome(change));
    foreign.storage.subscribe((change) => this.#onForeign(change));
  }

  #onHome({ resource, previous, current }: Change): void {
    if (resource !== 'pods' || previous === undefined) return;
    if (current === undefined) this.#onGone(previous);
    else if (previous.metadata.uid === current.metadata.uid) this.#onChanged(previous, current);
  }

  #onChanged(previous: AnyObject, current: AnyObject): void {
    const before = phaseOf(previous);
    const after = phaseOf(current);
    const { name, uid } = current.metadata;
    if (TERMINAL.has(before) && before !== after)
      this.violations.push(`I3: ${name} went from ${before} to ${after}`);
    if (after === 'Failed' && before !== after) this.#onFailed(current);
    const shown = containerOf(current);
    if (shown !== undefined && !(this.#kubelet.starts.get(uid) ?? []).includes(shown)) {
      this.violations.push(`I4: ${name} shows ${shown}, which never ran for it`);
    }
  }

  /** A pod that is deleted at home may fail when its body has gone; any other one only with its body. */
  #onFailed({ metadata: { name, uid, deletionTimestamp } }: AnyObject): void {
    const body = this.#bodyOf(uid);
    if (this.lost.has(uid) || phaseOf(body) === 'Failed') return;
    if (deletionTimestamp !== undefined && body === undefined) return;
    this.violations.push(`I4: ${name} failed at home only`);
  }

  /** Whoever waits for the end of a pod sees it before the pod goes. A forced deletion waits for nobody, and marks nothing. */
  #onGone(pod: AnyObject): void {
    const phase = phaseOf(pod);
    if (pod.metadata.deletionTimestamp === undefined || TERMINAL.has(phase)) return;
    if (!isEndAwaited(pod as unknown as Pod)) return;
    this.violations.push(`I4: ${pod.metadata.name} went while ${phase}`);
  }

  #onForeign({ resource, current }: Change): void {
    if (resource !== 'pods' || current === undefined) return;
    const uid = current.metadata.labels?.[LABEL_HOME_UID];
    const bodies = this.#foreign.storage
      .list('pods')
      .filter(({ metadata }) => metadata.labels?.[LABEL_HOME_UID] === uid);
    if (bodies.length > 1) this.violations.push(`I1: ${uid} has ${bodies.length} bodies`);
    const starts = this.#kubelet.starts.get(uid ?? '') ?? [];
    if (starts.length > 1 && !this.remade.has(uid ?? ''))
      this.violations.push(`I5: ${current.metadata.name} ran ${starts.length} times`);
  }

  /** What is not yet as it must be in the end. */
  differences(): string[] {
    return [...this.#ofHome(), ...this.#orphans(), ...this.#strayWrites()];
  }

  #ofHome(): string[] {
    return this.#home.storage.list('pods').flatMap((pod) => {
      const { uid, name, deletionTimestamp } = pod.metadata;
      if (deletionTimestamp !== undefined) return [`I7: ${name} is still ending`];
      if (TERMINAL.has(phaseOf(pod))) return [];
      const body = this.#bodyOf(uid);
      if (body === undefined) return [`I1: ${name} has no body`];
      if (phaseOf(body) === 'Pending') return [`I7: ${name} does not run yet`];
      if (phaseOf(body) !== phaseOf(pod))
        return [`I7: ${name} is ${phaseOf(body)} but shown ${phaseOf(pod)}`];
      return containerOf(body) === containerOf(pod) ? [] : [`I7: ${name} shows another container`];
    });
  }

  #orphans(): string[] {
    const owners = new Set(this.#home.storage.list('pods').map(({ metadata }) => metadata.uid));
    return this.#foreign.storage
      .list('pods')
      .filter(({ metadata }) => !owners.has(metadata.labels?.[LABEL_HOME_UID] ?? ''))
      .map(({ metadata }) => `I2: ${metadata.name} over there belongs to nobody`);
  }

  #strayWrites(): string[] {
    const stray = (log: readonly string[], allowed: readonly RegExp[]): string[] =>
      log.filter((line) => !line.startsWith('GET ') && !allowed.some((pattern) => pattern.test(line)));
    return [...stray(this.#home.log, ALLOWED.home), ...stray(this.#foreign.log, ALLOWED.foreign)].map(
      (line) => `I6: ${line}`,
    );
  }

  #bodyOf(uid: string): AnyObject | undefined {
    return this.#foreign.storage
      .list('pods')
      .find(({ metadata }) => metadata.labels?.[LABEL_HOME_UID] === uid);
  }
}

function containerOf(pod: AnyObject | undefined): string | undefined {
  const statuses = (pod?.status?.['containerStatuses'] ?? []) as { containerID?: string }[];
  return statuses[0]?.containerID;
}
