import { LABEL_MANAGED_BY, LABEL_PROVIDER, LABEL_VIRTUAL_NODE, OFFLOADED_REASONS } from '../../api/names.ts';
import { nodeNameOf } from '../../api/node-labels.ts';
import { persistentVolumes, storageClasses } from '../../api/resources.ts';
import type { VirtualNode, VirtualNodeSpec } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { relayed } from '../../kube/events.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Informer } from '../../kube/informer.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import type { RemoteEvent } from '../events/remote-events.ts';
import { claimNames } from '../forge/references.ts';
import type { CommonParts } from '../namespaces.ts';
import type { Refusal } from '../pods/refusal.ts';
import type { Tenant } from '../tenants.ts';
import type { ClaimSides } from './claim-sides.ts';
import {
  claimKey,
  claimKeyOf,
  claimRefusal,
  homeUidOf,
  isOurClass,
  type StorageClass,
  type Volume,
  volumeName,
} from './claims.ts';
import type { StoragePlace } from './forge.ts';
import { Outlooks } from './outlooks.ts';
import { ClaimReconciler, claimSubject, type Known } from './reconciler.ts';

interface StorageOptions extends CommonParts {
  /** As read at start. */
  virtualNode: VirtualNode;
  /** Caches of a process with many virtual nodes, which share their watches; undefined: it has its own. */
  shared: Caches | undefined;
  /** As it is now. */
  spec: () => VirtualNodeSpec | undefined;
  log: Logger;
}

/** The same functions for all who share a watch. */
const ourClass = (one: StorageClass): StorageClass | undefined => (isOurClass(one) ? one : undefined);
const byClaim = { claim: (volume: Volume): string[] => [claimKeyOf(volume) ?? ''] };

/** Besides all warnings, events over there with this reason are told here. */
const WORTH_TELLING = 'ProvisioningSucceeded';

/**
 * Volumes in the foreign cluster for claims here: the provisioner of StorageClasses `tributary.dev/storage`. Watches a
 * handful of classes and its own volumes; claims only where somebody uses such a class, or a pod here mounts one.
 */
export class Storage implements Component {
  readonly name = 'storage';
  /** StorageClasses with our provisioner. */
  readonly classes: Cache<StorageClass>;
  /** Volumes of ours, for claims of all namespaces. */
  readonly volumes: Cache<Volume>;
  readonly #options: StorageOptions;
  readonly #outlooks: Outlooks;
  readonly #reconciler: ClaimReconciler;
  readonly #nodeName: string;
  readonly #owner: string;
  readonly #nodeLabel: StoragePlace['nodeLabel'];
  readonly #background = new Background();
  #listener: (() => void) | undefined;

  constructor(options: StorageOptions) {
    const { virtualNode, home, clock, log } = options;
    const { name, labels } = virtualNode.metadata;
    this.#options = options;
    this.#nodeName = nodeNameOf(virtualNode);
    const clusterID = labels?.[LABEL_PROVIDER];
    this.#owner = clusterID ?? name;
    // Virtual nodes of one foreign cluster come and go with its offers; each of them can reach its volumes.
    this.#nodeLabel =
      clusterID === undefined
        ? { key: LABEL_VIRTUAL_NODE, value: name }
        : { key: LABEL_PROVIDER, value: clusterID };
    const common = { client: home, clock, log: log.named('storage') };
    const own = this.#owner;
    const { shared } = options;
    this.classes =
      shared?.of(storageClasses, { transform: ourClass }) ??
      new Informer<StorageClass>({ ...common, type: storageClasses, list: {}, transform: ourClass });
    this.volumes =
      shared?.of(persistentVolumes, {
        list: { labelSelector: LABEL_MANAGED_BY },
        only: ({ metadata }) => metadata.labels?.[LABEL_MANAGED_BY] === own,
        indexes: byClaim,
      }) ??
      new Informer<Volume>({
        ...common,
        type: persistentVolumes,
        list: { labelSelector: `${LABEL_MANAGED_BY}=${own}` },
        indexes: byClaim,
      });
    this.#outlooks = new Outlooks(clock);
    this.#reconciler = new ClaimReconciler({
      ...options,
      owner: this.#owner,
      situation: (namespace, claim) => this.#situation(namespace, claim),
      waitMs: ({ metadata }) => this.#outlooks.waitMs(metadata.uid),
      relistVolumes: (reason) => this.volumes.relist(reason),
    });
  }

  /** Does not wait: an agent that an earlier version set up lacks the rights, and then everything but volumes works. */
  start(): void {
    this.#background.run(async (signal) =>
      Promise.all([this.classes.start(signal), this.volumes.start(signal)]).then(
        () => this.#listener?.(),
        // Stopped before that.
        () => undefined,
      ),
    );
  }

  /** Called when classes and volumes have been read completely for the first time. */
  onSynced(listener: () => void): void {
    this.#listener = listener;
  }

  async stop(): Promise<void> {
    await this.#background.stop();
    await Promise.all([this.classes.stop(), this.volumes.stop()]);
  }

  /** Whether claims of that namespace are to be followed, whatever its pods mount. */
  concerns({ mapping }: Tenant): boolean {
    if (this.classes.size > 0) return true;
    return [...this.volumes.list()].some(({ spec }) => spec?.claimRef?.namespace === mapping.homeNamespace);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    return this.#reconciler.reconcile(key, signal);
  }

  /** Why the pod's claims keep it from running over there; `pending`: not known yet. */
  state(pod: Pod): readonly Refusal[] | 'pending' {
    const names = claimNames(pod);
    if (names.length === 0) return [];
    const sides = this.#options.tenants.of(pod.metadata.namespace ?? '')?.claims;
    const why = sides?.forbidden ?? this.#forbidden;
    if (why !== undefined) {
      const message = `claims cannot be looked after, the rights to it are missing (made by an earlier version?): ${why}`;
      return [{ reason: OFFLOADED_REASONS.missingReference, message }];
    }
    if (sides === undefined || !this.#isSynced(sides)) return 'pending';
    return names.flatMap((name) => this.#refusal(pod, name, sides) ?? []);
  }

  /** An event about a claim over there. */
  heard(homeNamespace: string, event: RemoteEvent, isNew: boolean): void {
    this.#outlooks.heard(event);
    const sides = this.#options.tenants.of(homeNamespace)?.claims;
    const remote = sides?.remote(event.podName);
    const home = sides?.home(event.podName);
    const isAbout = remote?.metadata.uid === event.podUid && homeUidOf(remote) === home?.metadata.uid;
    if (!isNew || home === undefined || !isAbout) return;
    if (event.type !== 'Warning' && event.reason !== WORTH_TELLING) return;
    const message = `${event.component} over there: ${event.message}`;
    this.#options.events.event(claimSubject(home), event.type, relayed(event.reason), message);
  }

  get #forbidden(): string | undefined {
    return [this.classes, this.volumes]
      .filter(({ synced, contact }) => !synced && contact.code === 'Forbidden')
      .map(({ contact }) => contact.error)[0];
  }

  #isSynced(sides: ClaimSides): boolean {
    return this.classes.synced && this.volumes.synced && sides.synced;
  }

  #refusal(pod: Pod, name: string, sides: ClaimSides): Refusal | undefined {
    const home = sides.home(name);
    const homeClass = home?.spec?.storageClassName;
    const volume = home === undefined ? undefined : this.volumes.get(volumeName(home.metadata.uid));
    return claimRefusal({
      name,
      home,
      remote: sides.remote(name),
      volume,
      isOurClass: homeClass === undefined ? undefined : this.classes.get(homeClass) !== undefined,
      nodeName: pod.spec?.nodeName ?? this.#nodeName,
    });
  }

  #situation(namespace: string, name: string): Known | undefined {
    const { tenants, namespaces, spec, contact, virtualNode } = this.#options;
    const tenant = tenants.of(namespace);
    if (tenant === undefined) return undefined;
    const sides = tenant.claims;
    const home = sides.home(name);
    const remote = sides.remote(name);
    const situation: Known['situation'] = {
      namespace,
      home,
      homeClass: this.classes.get(home?.spec?.storageClassName ?? ''),
      remote,
      outlook: remote === undefined ? 'unknown' : this.#outlooks.of(remote.metadata.uid),
      volumes: this.volumes.byIndex('claim', claimKey(namespace, name)),
      virtualNode: virtualNode.metadata.name,
      nodeName: this.#nodeName,
      mapping: spec() ?? {},
      place: {
        tenantNamespace: tenant.mapping.tenantNamespace,
        owner: this.#owner,
        nodeLabel: this.#nodeLabel,
      },
      accepting: namespaces.isAccepting(namespace),
      contact: contact() && namespaces.isRecorded(namespace) && this.#isSynced(sides),
    };
    return { situation, sides };
  }
}
