import { LABEL_HOME_UID } from '../../api/names.ts';
import type { Pod } from '../../api/wire.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Tenants } from '../tenants.ts';
import type { History } from './home-history.ts';

interface KeptBodiesOptions {
  history: History;
  homePods: Pick<Informer<Pod>, 'list' | 'listBeganAt' | 'onChange'>;
  tenants: Pick<Tenants, 'all'>;
  /** The key of a home pod whose body is kept no longer. */
  onReleased: (homeKey: string) => void;
}

/** The home cache lists anew. */
const UNKNOWN_MS = 1_000;

/**
 * Remote pods whose home pods a restore of home has taken away. They run on for a while: their controllers at home may make
 * pods that they can serve, and people may want to look. A pod that somebody deletes after the restore is not among them.
 */
export class KeptBodies {
  readonly #options: KeptBodiesOptions;
  /** UIDs of home pods that have been seen since the restore. */
  readonly #seen = new Set<string>();
  /** UIDs of remote pods that have had to make room. */
  readonly #released = new Set<string>();

  constructor(options: KeptBodiesOptions) {
    const { history, homePods } = options;
    this.#options = options;
    history.onRestored(() => this.#begin());
    homePods.onChange((_key, current) => {
      if (current !== undefined && history.keptMs > 0 && this.#isRelisted)
        this.#seen.add(current.metadata.uid);
    });
  }

  /** Whether its home pod went with a history that was lost, as far as is known. */
  isKept({ metadata }: Pod): boolean {
    const homeUid = metadata.labels?.[LABEL_HOME_UID];
    const isKeeping = this.#options.history.keptMs > 0 && this.#isRelisted;
    return (
      isKeeping && homeUid !== undefined && !this.#seen.has(homeUid) && !this.#released.has(metadata.uid)
    );
  }

  /** After a live read has found no home pod: for how long the body stays; 0: it may go. Milliseconds. */
  async keepMs(body: Pod, signal: AbortSignal): Promise<number> {
    const { history } = this.#options;
    if (!(await history.isChecked(signal))) return UNKNOWN_MS;
    if (history.keptMs === 0) return 0;
    if (!this.#isRelisted) return UNKNOWN_MS;
    return this.isKept(body) ? history.keptMs : 0;
  }

  /** Keys of the home pods whose bodies are kept, in order; those of bodies that are ending are not among them. */
  get homeKeys(): string[] {
    return this.#options.history.keptMs === 0 ? [] : [...this.#homeKeys()].toSorted();
  }

  /**
   * Room is wanted in that tenant namespace: one goes, the oldest first, after the one before it has gone. False: none is left.
   */
  release(tenantNamespace: string): boolean {
    const bodies = [...this.#options.tenants.all()]
      .filter(({ mapping }) => mapping.tenantNamespace === tenantNamespace)
      .flatMap(({ pods, mapping }) => Array.from(pods.list(), (pod) => ({ pod, mapping })));
    if (bodies.some(({ pod }) => this.#released.has(pod.metadata.uid))) return true;
    const [first] = bodies
      .filter(({ pod }) => this.isKept(pod))
      .toSorted((a, b) => (ageOf(a.pod) < ageOf(b.pod) ? -1 : 1));
    if (first === undefined) return false;
    this.#released.add(first.pod.metadata.uid);
    this.#options.onReleased(homeKeyOf(first.pod, first.mapping));
    return true;
  }

  *#homeKeys(): Iterable<string> {
    for (const { pods, mapping } of this.#options.tenants.all()) {
      for (const pod of pods.list()) {
        if (pod.metadata.deletionTimestamp === undefined && this.isKept(pod)) yield homeKeyOf(pod, mapping);
      }
    }
  }

  get #isRelisted(): boolean {
    const { history, homePods } = this.#options;
    return homePods.listBeganAt >= history.noticedAt;
  }

  #begin(): void {
    this.#seen.clear();
    this.#released.clear();
    if (!this.#isRelisted) return;
    for (const { metadata } of this.#options.homePods.list()) this.#seen.add(metadata.uid);
  }
}

const ageOf = ({ metadata }: Pod): string => metadata.creationTimestamp;

const homeKeyOf = ({ metadata }: Pod, { homeNamespace }: { homeNamespace: string }): string =>
  `${homeNamespace}/${metadata.name}`;
