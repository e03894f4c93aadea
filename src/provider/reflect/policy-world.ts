import { ownAddresses } from '../../api/pod.ts';
import { namespaces, pods } from '../../api/resources.ts';
import type { Namespace, Pod } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { Clock } from '../../lib/clock.ts';
import { Debounce } from '../../lib/debounce.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';

/** What selectors of NetworkPolicies find at home. */
export interface PolicyWorld {
  namespaces(): Iterable<Namespace>;
  /** Of one namespace; only what `slimPod` keeps. */
  podsIn(namespace: string): readonly Pod[];
  /** Whether pods that are known run on a node with that address. */
  hasNodeAt(address: string): boolean;
}

/** How long changes of pods are gathered: each can change the addresses in each policy. */
const GATHER_MS = 500;
const BY_NAMESPACE = 'namespace';
const BY_NODE_ADDRESS = 'node address';

/**
 * All pods and namespaces of home, by labels and addresses. Watched from the first policy on that selects by them: most namespaces
 * have none, and an agent that watches all pods pays for all of them.
 */
export class HomePolicyWorld implements PolicyWorld, Component {
  readonly name = 'pods that policies select';
  readonly #pods: Cache<Pod>;
  readonly #namespaces: Cache<Namespace>;
  readonly #background = new Background();
  readonly #changes: Debounce;
  #isWatched = false;

  constructor({ caches, clock, onChange }: { caches: Caches; clock: Clock; onChange: () => void }) {
    this.#pods = caches.of(pods, {
      transform: slimPod,
      indexes: { [BY_NAMESPACE]: namespaceOf, [BY_NODE_ADDRESS]: nodeAddressesOf },
      name: 'cache of pods that policies select',
    });
    this.#namespaces = caches.of(namespaces, { list: { metadataOnly: true }, name: 'cache of namespaces' });
    this.#changes = new Debounce({ clock, intervalMs: GATHER_MS, callsAtOnce: true }, onChange);
  }

  start(): void {}

  async stop(): Promise<void> {
    this.#changes.stop();
    await this.#background.stop();
    await Promise.all([this.#pods.stop(), this.#namespaces.stop()]);
  }

  /** Returns whether all is known; if not, it will be, and the listener is called then. */
  isKnown(): boolean {
    if (!this.#isWatched) this.#watch();
    return this.#pods.synced && this.#namespaces.synced;
  }

  /** Why it is not known, where an API server has said so. */
  get problem(): string | undefined {
    return this.#pods.contact.error ?? this.#namespaces.contact.error;
  }

  namespaces(): Iterable<Namespace> {
    return this.#namespaces.list();
  }

  podsIn(namespace: string): readonly Pod[] {
    return this.#pods.byIndex(BY_NAMESPACE, namespace);
  }

  hasNodeAt(address: string): boolean {
    return this.#pods.byIndex(BY_NODE_ADDRESS, address).length > 0;
  }

  #watch(): void {
    this.#isWatched = true;
    this.#pods.onChange((_key, current, previous) => {
      if (!deepEqual(factsOf(current), factsOf(previous))) this.#changes.trigger();
    });
    this.#namespaces.onChange((_key, current, previous) => {
      if (!deepEqual(current?.metadata.labels, previous?.metadata.labels)) this.#changes.trigger();
    });
    this.#background.run(async (signal) => {
      await Promise.allSettled([this.#pods, this.#namespaces].map(async (cache) => cache.start(signal)));
      this.#changes.trigger();
    });
  }
}

const namespaceOf = ({ metadata }: Pod): string[] => [metadata.namespace ?? ''];

const nodeAddressesOf = ({ status }: Pod): string[] => (status?.hostIPs ?? []).map(({ ip }) => ip);

const factsOf = (pod: Pod | undefined): unknown =>
  pod && [pod.metadata.labels, pod.spec?.containers, ownAddresses(pod)];

/** Keeps what policies ask of a pod: labels, addresses, also those of its node, and ports that have names. */
function slimPod({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels } = metadata;
  const containers = (spec?.containers ?? []).flatMap((container) => {
    const ports = (container.ports ?? []).filter((port) => port.name !== undefined);
    return ports.length === 0 ? [] : [{ name: container.name, ports }];
  });
  return {
    metadata: { name, uid, resourceVersion, creationTimestamp, ...present({ namespace, labels }) },
    spec: { containers, ...present({ hostNetwork: spec?.hostNetwork }) },
    status: present({ phase: status?.phase, podIPs: status?.podIPs, hostIPs: status?.hostIPs }),
  };
}
