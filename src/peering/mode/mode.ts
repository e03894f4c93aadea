import {
  CLUSTER_MODE,
  type ClusterMode,
  clusterModes,
  type FenceTerms,
  TETHER_DEFAULTS,
} from '../../api/cluster-mode.ts';
import { type Direction, disabledIn, type ForeignCluster } from '../../api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { nodeNameOf } from '../../api/node-labels.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import { API_VERSION, type VirtualNode } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ControllerBasics, type ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { deleteByUid, replaceStatusIfDiffers } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { idOf, isAgreed } from '../clusters/foreign-cluster.ts';
import type { ClusterIntent, Ties } from '../clusters/intent.ts';
import type { PeeringReports, PeerLinks } from '../ports.ts';
import { decideMode, type ModeFacts, type Obstacle, type OtherCluster, takingBackMs } from './decide.ts';
import { FenceRenewal, type Renewing } from './renewal.ts';
import { TETHER_POLICY, tetherPolicy } from './sharing-policy.ts';
import { Silence } from './silence.ts';

type Collection<T extends KubeObject> = Pick<Cache<T>, 'get' | 'list' | 'onChange'>;

interface ModeOptions extends ControllerBasics {
  caches: Caches;
  events: EventRecorder;
  /** Our own ClusterID. */
  own: string;
  clusters: Collection<ForeignCluster>;
  sharing: Collection<SharingPolicy>;
  virtualNodes: Collection<VirtualNode>;
  /** Late bound: these ask for `ties`. */
  links: () => Pick<PeerLinks, 'view' | 'onChange' | 'call'>;
  outgoing: () => PeeringReports;
  incoming: () => PeeringReports & {
    requests(): Iterable<PeeringRequest>;
    request(clusterID: string): PeeringRequest | undefined;
  };
  /** Whether pods that were forwarded are being brought back at this moment. */
  isBringingBack: () => boolean;
  /** Whether pods of users are forwarded, or on their way home. */
  hasForwarded: () => boolean;
  /** What people and policies want of a cluster; late bound, as it asks for `ties`. */
  intent: (clusterID: string) => Pick<ClusterIntent, 'wanted'>;
}

/** Keeps the one ClusterMode: who decides about the nodes of this cluster. */
export class ModeKeeper {
  readonly #options: ModeOptions;
  readonly #modes: Cache<ClusterMode>;
  readonly #controller: Controller;
  readonly #renewal: FenceRenewal;
  readonly #silence: Silence;
  readonly #listeners = new Listeners();
  /** Calls back when the ClusterMode has changed in a way that others act on; the returned function ends that. */
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #tiesChanged = new Listeners<[clusterID: string]>();
  /** Calls back with a cluster that has become a device or ceased to be one, or by another way; not for a change of the mode. */
  readonly onTies: Listeners<[clusterID: string]>['add'] = this.#tiesChanged.add;
  /** What others were told, by ClusterID. */
  readonly #devices = new Map<string, Ties>();
  #wasLinked = false;

  constructor(options: ModeOptions) {
    const { caches, clock, log, metrics } = options;
    this.#options = options;
    this.#silence = new Silence(clock);
    this.#modes = caches.of(clusterModes);
    this.#controller = new Controller({
      name: 'mode',
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(signal),
      clock,
      log: log.named('mode'),
      ...(metrics && { metrics }),
    });
    this.#renewal = new FenceRenewal({
      clock,
      log: log.named('mode'),
      links: options.links,
      wanted: () => this.#renewing(),
      changed: () => this.#controller.add(CLUSTER_MODE),
    });
    this.#modes.onChange((_name, current, previous) => {
      this.#controller.add(CLUSTER_MODE);
      if (deepEqual(actedOn(current), actedOn(previous))) return;
      this.#renewal.wake();
      this.#listeners.tell();
    });
  }

  /** Before those who ask for `ties` and `current`. */
  cache(): Component {
    return this.#modes;
  }

  actors(): Component[] {
    return [subscribing('mode', () => this.#follow()), this.#controller, this.#renewal];
  }

  /** Undefined: the object is not there yet. */
  current(): ClusterMode | undefined {
    return this.#modes.get(CLUSTER_MODE);
  }

  /** What the mode means for one other cluster. From caches. */
  ties(clusterID: string): Ties {
    const { spec, status } = this.current() ?? {};
    const { tether, phase } = status ?? {};
    const isOther = tether?.clusterID === clusterID;
    const fence = present({ fence: isOther ? fenceOf(this.current()) : undefined });
    if (spec?.tether === undefined || tether === undefined || phase === 'Ending') {
      return { ...this.#device(clusterID), ...fence };
    }
    return isOther ? { tie: 'Tether', ...fence } : { tetheredTo: spec.tether.cluster };
  }

  #renewing(): Renewing | undefined {
    const { status: { tether, runsLocallySince } = {} } = this.current() ?? {};
    const terms = fenceOf(this.current());
    if (tether === undefined || terms === undefined) return undefined;
    const mayResume = runsLocallySince === undefined && !this.#options.isBringingBack();
    return { clusterID: tether.clusterID, terms, mayResume };
  }

  /** Whether that cluster has handed itself over to this one and was let in, and how its pods may come back to it. */
  #device(clusterID: string): Ties {
    const { metadata, spec, status } = this.#options.incoming().request(clusterID) ?? {};
    if (spec?.tether !== true || metadata?.deletionTimestamp !== undefined) return {};
    if (status?.phase !== 'Accepted' && status?.phase !== 'Established') return {};
    const namespaces = (status.tenantNamespaces ?? []).map(({ tenantNamespace }) => tenantNamespace);
    const all = this.#nodesOf(clusterID);
    const virtualNodes = all.map(({ metadata: { name } }) => name).toSorted();
    const nodes = all.map(nodeNameOf).toSorted();
    return { tie: 'Device', returning: { namespaces: namespaces.toSorted(), virtualNodes, nodes } };
  }

  #nodesOf(clusterID: string): VirtualNode[] {
    return [...this.#options.virtualNodes.list()].filter(
      ({ metadata }) => metadata.labels?.[LABEL_PROVIDER] === clusterID,
    );
  }

  /** A write to a request may mean nothing here, and they are frequent. */
  #lookAt(clusterID: string): void {
    const now = this.#device(clusterID);
    if (deepEqual(now, this.#devices.get(clusterID) ?? {})) return;
    if (now.tie === undefined) this.#devices.delete(clusterID);
    else this.#devices.set(clusterID, now);
    this.#tiesChanged.tell(clusterID);
  }

  /** Only when a link has come: it also tells of each heartbeat. */
  #wakeIfLinked(clusterID: string): void {
    const isLinked = this.#options.links().view(clusterID)?.connected === true;
    if (isLinked && !this.#wasLinked) this.#renewal.wake();
    this.#wasLinked = isLinked;
  }

  #follow(): (() => void)[] {
    const { clusters, sharing, virtualNodes, links, outgoing, incoming } = this.#options;
    const look = (): void => this.#controller.add(CLUSTER_MODE);
    const lookAt = (clusterID: string | undefined): void => {
      look();
      if (clusterID !== undefined) this.#lookAt(clusterID);
    };
    look();
    for (const { metadata } of incoming().requests()) lookAt(metadata.name);
    return [
      clusters.onChange(look),
      sharing.onChange(look),
      virtualNodes.onChange((_name, current, previous) =>
        lookAt((current ?? previous)?.metadata.labels?.[LABEL_PROVIDER]),
      ),
      links().onChange(({ clusterID }) => {
        look();
        if (clusterID !== undefined && clusterID === this.current()?.status?.tether?.clusterID) {
          this.#wakeIfLinked(clusterID);
        }
      }),
      outgoing().onChange(look),
      incoming().onChange(lookAt),
    ];
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult | void> {
    const { client, events } = this.#options;
    const mode = this.current();
    if (mode === undefined) {
      const { kind } = clusterModes;
      const draft = { apiVersion: API_VERSION, kind, metadata: { name: CLUSTER_MODE }, spec: {} };
      await client.create(clusterModes, draft, { signal }).catch(ignoring('AlreadyExists'));
      return;
    }
    const facts = this.#facts(mode);
    const { status, againMs } = decideMode(facts);
    const full = { ...mode, apiVersion: API_VERSION, kind: clusterModes.kind };
    await replaceStatusIfDiffers(client, clusterModes, full, { status, signal });
    if (status.phase !== mode.status?.phase && mode.status !== undefined) {
      const isBad = status.phase === 'Refused' || status.phase === 'Lost';
      const message = status.conditions?.[0]?.message ?? '';
      events.event(full, isBad ? 'Warning' : 'Normal', status.phase ?? 'Autonomous', message);
    }
    const waitMs = takingBackMs(status, facts);
    if (waitMs === undefined) await this.#keepPolicy({ ...mode, status }, signal);
    const requeueAfterMs = againMs ?? waitMs;
    return present({ requeueAfterMs });
  }

  /** The other cluster may have what is here only while the tether is asked for. */
  async #keepPolicy({ spec, status }: ClusterMode, signal: AbortSignal): Promise<void> {
    const { client, sharing } = this.#options;
    const current = sharing.get(TETHER_POLICY);
    const clusterID = status?.phase === 'Ending' ? undefined : status?.tether?.clusterID;
    if (spec?.tether === undefined || clusterID === undefined) {
      if (current !== undefined) await deleteByUid(client, sharingPolicies, current, { signal });
      return;
    }
    const wanted = tetherPolicy(clusterID, spec.tether);
    if (current === undefined) {
      await client.create(sharingPolicies, wanted, { signal }).catch(ignoring('AlreadyExists'));
    } else if (!deepEqual({ ...current.spec, ...wanted.spec }, current.spec)) {
      const { uid } = current.metadata;
      const patch = { type: 'merge', body: { metadata: { uid }, spec: wanted.spec } } as const;
      await client.patch(sharingPolicies, { name: TETHER_POLICY }, patch, { signal });
    }
  }

  #facts(mode: ClusterMode): ModeFacts {
    const { own, clock } = this.#options;
    const clusterID = this.#otherID(mode);
    const other = clusterID === undefined ? undefined : this.#other(clusterID);
    const agreed = clusterID === undefined ? undefined : this.#renewal.agreed(clusterID);
    // The longest of all that may have been agreed on: the last word may not have come through.
    const terms = [agreed, mode.status?.tether?.fence, fenceOf(mode)].filter((one) => one !== undefined);
    return {
      agreed,
      stoppedInMs: Math.max(...terms.map((one) => this.#renewal.stoppedInMs(one)), -Infinity),
      mode,
      own,
      other,
      ...present({ silentMs: this.#silence.lookMs(other?.isLinked !== false, mode.status?.contactLost) }),
      obstacles: this.#obstacles(clusterID),
      hasForwarded: this.#options.hasForwarded(),
      nowMs: clock.now(),
    };
  }

  /** Only an identity that was proved. */
  #otherID({ spec, status }: ClusterMode): string | undefined {
    if (spec?.tether === undefined) {
      // A ClusterMode that was deleted has taken its status with it.
      return (
        status?.tether?.clusterID ?? this.#options.sharing.get(TETHER_POLICY)?.spec.peers.clusterIDs?.[0]
      );
    }
    const cluster = this.#options.clusters.get(spec.tether.cluster);
    if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) return undefined;
    // Nothing can prove itself to be this cluster.
    return cluster.spec?.clusterID === this.#options.own ? this.#options.own : cluster.status?.clusterID;
  }

  #other(clusterID: string): OtherCluster {
    const { links, outgoing, incoming } = this.#options;
    const view = links().view(clusterID);
    const lentBy = incoming().request(clusterID)?.status?.policy;
    return {
      clusterID,
      ...(view?.clusterName !== undefined && { clusterName: view.clusterName }),
      isLinked: view?.connected === true,
      outgoing: outgoing().report(clusterID),
      incoming: incoming().report(clusterID),
      nodes: this.#nodesOf(clusterID).map(nodeNameOf),
      isDevice: this.#device(clusterID).tie === 'Device',
      disabled: this.#disabled(),
      isUsedApart: this.current()?.spec?.tether === undefined && this.#options.intent(clusterID).wanted,
      isLentApart: lentBy !== TETHER_POLICY,
    };
  }

  #disabled(): Direction[] {
    const cluster = this.#options.clusters.get(this.current()?.spec?.tether?.cluster ?? '');
    return cluster === undefined ? [] : disabledIn(cluster);
  }

  #obstacles(except: string | undefined): Obstacle[] {
    const { incoming, clusters } = this.#options;
    const names = new Map([...clusters.list()].map((cluster) => [idOf(cluster), cluster.metadata.name]));
    return [...incoming().requests()]
      .map(({ metadata }) => metadata.name)
      .filter((clusterID) => clusterID !== except && isAgreed(incoming().report(clusterID)))
      .toSorted()
      .map((clusterID) => ({ clusterID, name: names.get(clusterID) ?? clusterID }));
  }
}

/** The terms that the other cluster is to hold itself to: also while the last ones still matter. */
function fenceOf(mode: ClusterMode | undefined): FenceTerms | undefined {
  const { spec: { tether } = {}, status: { phase, tether: before, runsLocallySince } = {} } = mode ?? {};
  if (tether?.whenLost === 'RunLocally') {
    const { lostAfterSeconds, stopSeconds } = { ...TETHER_DEFAULTS, ...tether };
    return { afterSeconds: lostAfterSeconds, stopSeconds };
  }
  return phase === 'Ending' || runsLocallySince !== undefined ? before?.fence : undefined;
}

const actedOn = (mode: ClusterMode | undefined): unknown =>
  mode && [
    mode.spec?.tether,
    mode.metadata.deletionTimestamp,
    mode.status?.mode,
    mode.status?.phase,
    mode.status?.tether?.clusterID,
    mode.status?.nodes,
    mode.status?.runsLocallySince,
  ];
