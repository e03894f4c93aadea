import {
  type Advertisement,
  advertisements,
  type ProviderServiceStatus,
  SERVICE_REASONS,
} from '../../api/advertisement.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import { LABEL_OFFERED_SERVICE, LABEL_PEER, LABEL_PROVIDER, LABEL_SERVICE_NAME } from '../../api/names.ts';
import { endpointSlices, services } from '../../api/resources.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import type { EndpointSlice, KubeObject, Service } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { type ControllerBasics, Controller, type ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, throwFirst, TributaryError } from '../../lib/errors.ts';
import { LastWords } from '../../lib/last-words.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { DocumentChanges, ServicesDocument } from '../protocol/documents.ts';
import {
  forgeEndpoints,
  type HomeService,
  HomeServiceWriter,
  type ServiceProblem,
  silenced,
} from './home-services.ts';
import { LinkPatience } from './link-patience.ts';
import { sortedPlaces } from './offering.ts';
import { checkServices, homeKey, planOf } from './plan.ts';
import type { Borrowed, Linked, ProviderNetwork, ProviderNetworks } from './ports.ts';

export interface UsedServicesOptions extends ControllerBasics {
  caches: Caches;
  events: EventRecorder;
  borrowed: Borrowed;
  networks: ProviderNetworks;
  /** Called from `start` on, so that parts that need each other can be made in any order. */
  linked: () => Linked;
  /** All namespaces. */
  namespaces: Pick<Cache<KubeObject>, 'get' | 'onChange'>;
}

const CONCURRENCY = 4;
/** Nobody tells us that a name is free again, or that a namespace may be written to again. */
const LOOK_AGAIN_MS = 30_000;
const BY_PROVIDER = 'provider';

/** What a provider has said. Null: nothing is offered (any more); absent: it has said nothing since we started. */
type ReceivedServices = Pick<DocumentChanges, 'services'>;

/** We as consumer: home Services for those Services of providers that a policy here accepts. */
export class UsedServices {
  readonly #options: UsedServicesOptions;
  readonly #advertisements: Cache<Advertisement>;
  readonly #services: Cache<Service>;
  readonly #slices: Cache<EndpointSlice>;
  readonly #writer: HomeServiceWriter;
  readonly #patience: LinkPatience;
  readonly #controller: Controller;
  readonly #received = new LastWords<ReceivedServices>();
  readonly #used = new Map<string, AddressPort[]>();
  readonly #changed = new Listeners<[clusterID: string]>();
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#changed.add;

  constructor(options: UsedServicesOptions) {
    this.#options = options;
    const { client, caches, clock, metrics } = options;
    const log = options.log.named('services');
    const ours = {
      list: { labelSelector: `${LABEL_OFFERED_SERVICE}=true` },
      indexes: { [BY_PROVIDER]: (object: KubeObject) => [providerOf(object)] },
    };
    this.#advertisements = caches.of(advertisements);
    this.#services = caches.of(services, ours);
    this.#slices = caches.of(endpointSlices, ours);
    this.#writer = new HomeServiceWriter({ client, services: this.#services, slices: this.#slices });
    this.#patience = new LinkPatience(clock, (clusterID) => this.#controller.add(clusterID));
    this.#controller = new Controller({
      clock,
      log,
      name: 'offered-services',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      ...(metrics && { metrics }),
    });
  }

  /** In the order of their start. */
  components(): Component[] {
    return [this.#advertisements, this.#services, this.#slices, this.#wiring(), this.#controller];
  }

  /**
   * Takes a document that was checked in form. Throws Invalid with what the provider is to be told; then what is in
   * place stays. Throws Unavailable before a contract is in force: then the document is given again a little later, and
   * strangers leave nothing behind.
   */
  received(clusterID: string, document: ServicesDocument | null): void {
    const checked = document === null ? null : checkServices(document);
    if (this.#inForce(clusterID) === undefined) {
      this.#received.forget(clusterID);
      if (checked === null) return;
      throw new TributaryError('Unavailable', 'no contract is in force yet, so no Services are used');
    }
    this.#received.update(clusterID, { services: checked });
    this.#controller.add(clusterID);
  }

  /** Endpoints over there, as we see their addresses; undefined: not known yet. */
  used(clusterID: string): readonly AddressPort[] | undefined {
    return this.#used.get(clusterID);
  }

  /**
   * A provider whose contract is in force. What is set up stays while another one is being agreed on, as it is for each
   * namespace that comes or goes: else a home Service would go with it, and come back with another cluster IP.
   */
  #inForce(clusterID: string): Advertisement | undefined {
    const found = this.#advertisements.get(clusterID);
    const { contract, virtualNodes = [] } = found?.status ?? {};
    const holds =
      contract !== undefined && (contract.providerSignature !== undefined || virtualNodes.length > 0);
    return holds && found?.metadata.deletionTimestamp === undefined ? found : undefined;
  }

  #wiring(): Component {
    const add = (clusterID: string): void => this.#controller.add(clusterID);
    const addOf = (...objects: (KubeObject | undefined)[]): void => {
      for (const object of objects) if (object !== undefined) add(providerOf(object));
    };
    return subscribing('offered services changes', () => {
      const { borrowed, networks, linked, namespaces } = this.#options;
      const ends = [
        this.#advertisements.onChange(add),
        this.#services.onChange((_key, current, previous) => addOf(current, previous)),
        this.#slices.onChange((_key, current, previous) => addOf(current, previous)),
        borrowed.onChange((clusterID) => {
          if (this.#isKnown(clusterID)) add(clusterID);
        }),
        networks.onChange(add),
        linked().onChange((clusterID) => this.#onLink(clusterID)),
        namespaces.onChange((_key, current, previous) => {
          if (current === undefined || previous === undefined) this.#all().forEach(add);
        }),
        () => this.#patience.stop(),
      ];
      for (const clusterID of this.#all()) {
        this.#patience.note(clusterID, linked().isLinked(clusterID));
        add(clusterID);
      }
      return ends;
    });
  }

  #onLink(clusterID: string): void {
    if (!this.#isKnown(clusterID)) return;
    this.#patience.note(clusterID, this.#options.linked().isLinked(clusterID));
    this.#controller.add(clusterID);
  }

  /** Whether something of it is or was here. */
  #isKnown(clusterID: string): boolean {
    return (
      this.#advertisements.get(clusterID) !== undefined ||
      this.#services.hasIndexed(BY_PROVIDER, clusterID) ||
      this.#slices.hasIndexed(BY_PROVIDER, clusterID) ||
      this.#received.of(clusterID).services !== undefined
    );
  }

  #all(): Set<string> {
    const objects = [...this.#services.list(), ...this.#slices.list()];
    const providers = [...this.#advertisements.list()].map(({ metadata }) => metadata.name);
    return new Set([...providers, ...objects.map(providerOf)]);
  }

  async #reconcile(clusterID: string, signal: AbortSignal): Promise<ReconcileResult | void> {
    const advertisement = this.#inForce(clusterID);
    if (advertisement === undefined) return this.#end(clusterID, signal);
    const accepted = this.#options.borrowed.policyOf(clusterID)?.spec.services ?? [];
    const { services: received } = this.#received.of(clusterID);
    if (received === undefined) return this.#wait(clusterID, accepted.length > 0, signal);
    const offered = received?.services ?? [];
    const namespace = (name: string): { isPeers: boolean } | undefined => {
      const found = this.#options.namespaces.get(name);
      if (found === undefined || found.metadata.deletionTimestamp !== undefined) return undefined;
      return { isPeers: found.metadata.labels?.[LABEL_PEER] !== undefined };
    };
    const { wanted, statuses } = planOf({ provider: clusterID, offered, accepted, namespace });
    const { networks } = this.#options;
    if (wanted.length === 0) networks.forget(clusterID);
    const network = wanted.length === 0 ? undefined : networks.of(clusterID);
    // It is not known yet what is reachable; a change will tell.
    if (wanted.length > 0 && network === undefined) return;
    const { kept, used, results, errors } = await this.#ensure(wanted, network, signal);
    await this.#sweep(clusterID, kept, signal).catch((error: unknown) => errors.push(error));
    this.#tellUsed(clusterID, used);
    const told = statuses.map((status) => ({ ...status, ...results.get(keyOf(status)) }));
    await this.#report(advertisement, told, signal);
    throwFirst(errors);
    return told.some(({ state }) => state === 'Failed') ? { requeueAfterMs: LOOK_AGAIN_MS } : undefined;
  }

  async #ensure(
    wanted: readonly HomeService[],
    network: ProviderNetwork | undefined,
    signal: AbortSignal,
  ): Promise<EnsureResult> {
    const made: EnsureResult = { kept: new Set(), used: [], results: new Map(), errors: [] };
    for (const home of wanted) {
      const unreachable = this.#unreachable(home.provider, network);
      const podAddress = (theirs: string): string | undefined => network?.podAddress(theirs);
      const { slices, ready, used } = forgeEndpoints(home, podAddress, unreachable !== undefined);
      // oxlint-disable-next-line no-await-in-loop -- few, and of one provider
      const problem = await this.#tried(this.#writer.ensure(home, slices, signal), made.errors);
      signal.throwIfAborted();
      if (problem !== undefined) {
        made.results.set(keyOf({ ...home.offered, ...home }), { state: 'Failed', ...problem });
        // A Service that may not be changed is still better than none: a new one would have another cluster IP.
        if (problem.reason !== SERVICE_REASONS.refused) continue;
      }
      made.kept.add(`Service ${homeKey(home)}`);
      for (const { metadata } of slices)
        made.kept.add(`EndpointSlice ${metadata.namespace}/${metadata.name}`);
      made.used.push(...used);
      if (problem !== undefined) continue;
      const none = { reason: SERVICE_REASONS.noEndpoints, message: 'no endpoint over there is ready' };
      const why = unreachable ?? (ready === 0 ? none : undefined);
      if (why !== undefined) made.results.set(keyOf({ ...home.offered, ...home }), { state: 'Used', ...why });
    }
    return made;
  }

  /** So that what fails for one does not hold up the others. */
  async #tried(
    writing: Promise<ServiceProblem | undefined>,
    errors: unknown[],
  ): Promise<ServiceProblem | undefined> {
    try {
      return await writing;
    } catch (error) {
      errors.push(error);
      // Somebody wrote first, and the cache will soon show it: people need not know.
      if (hasCode(error, 'Conflict')) return undefined;
      return { reason: SERVICE_REASONS.refused, message: `${errorMessage(error)}; it is tried again` };
    }
  }

  #unreachable(clusterID: string, network: ProviderNetwork | undefined): ServiceProblem | undefined {
    const { state } = network ?? {};
    if (state?.kind === 'Down') return { reason: SERVICE_REASONS.tunnelDown, message: state.message };
    if (state?.kind !== 'Up') {
      return { reason: SERVICE_REASONS.noNetwork, message: 'there is no network to the provider' };
    }
    return this.#patience.isOver(clusterID)
      ? { reason: SERVICE_REASONS.linkDown, message: 'the provider has not been heard of for a while' }
      : undefined;
  }

  /** Removes what is not kept, also where one removal fails. */
  async #sweep(clusterID: string, kept: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const isKept = (kind: string, { metadata }: KubeObject): boolean =>
      kept.has(`${kind} ${metadata.namespace}/${metadata.name}`);
    const errors: unknown[] = [];
    const failed = (error: unknown): void => {
      signal.throwIfAborted();
      errors.push(error);
    };
    for (const slice of this.#slices.byIndex(BY_PROVIDER, clusterID)) {
      if (isKept('EndpointSlice', slice)) continue;
      await this.#writer.remove(endpointSlices, slice, signal).catch(failed);
    }
    for (const service of this.#services.byIndex(BY_PROVIDER, clusterID)) {
      if (isKept('Service', service)) continue;
      await this.#writer.remove(services, service, signal).catch(failed);
    }
    throwFirst(errors);
  }

  /** After a restart what is in place stays as it is. Without a link for long, nobody knows where endpoints are now. */
  async #wait(clusterID: string, isAnyAccepted: boolean, signal: AbortSignal): Promise<void> {
    if (!isAnyAccepted) return this.#sweep(clusterID, new Set(), signal);
    if (!this.#patience.isOver(clusterID)) return;
    const errors: unknown[] = [];
    for (const slice of this.#slices.byIndex(BY_PROVIDER, clusterID)) {
      const silent = silenced(slice);
      const name = slice.metadata.labels?.[LABEL_SERVICE_NAME];
      if (silent !== undefined && name !== undefined) {
        const writing = this.#options.client.replace(endpointSlices, silent, { signal });
        await writing.catch((error: unknown) => errors.push(error));
        signal.throwIfAborted();
      }
    }
    throwFirst(errors);
  }

  async #end(clusterID: string, signal: AbortSignal): Promise<void> {
    // On one link nothing is said twice, so it is kept for a new contract.
    if (!this.#options.linked().isLinked(clusterID)) this.#received.forget(clusterID);
    await this.#sweep(clusterID, new Set(), signal);
    this.#options.networks.forget(clusterID);
    this.#patience.forget(clusterID);
    this.#tellUsed(clusterID, []);
    this.#used.delete(clusterID);
  }

  #tellUsed(clusterID: string, used: AddressPort[]): void {
    const before = this.#used.get(clusterID);
    const now = sortedPlaces(used);
    this.#used.set(clusterID, now);
    if (deepEqual(now, before)) return;
    this.#changed.tell(clusterID);
  }

  async #report(
    { metadata, status }: Advertisement,
    statuses: readonly ProviderServiceStatus[],
    signal: AbortSignal,
  ): Promise<void> {
    const told = statuses.map(({ message, ...status }) => ({
      ...status,
      ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
    }));
    const before = status?.services ?? [];
    if (deepEqual(told, before)) return;
    const { name, uid } = metadata;
    const body = { metadata: { uid }, status: { services: told.length === 0 ? null : told } };
    await this.#options.client.patch(
      advertisements,
      { name },
      { type: 'merge', body },
      { subresource: 'status', signal },
    );
    this.#tellPeople(metadata, told, before);
  }

  #tellPeople(
    metadata: Advertisement['metadata'],
    told: readonly ProviderServiceStatus[],
    before: readonly ProviderServiceStatus[],
  ): void {
    const known = new Map(before.map((status) => [keyOf(status), status]));
    const subject = { apiVersion: API_VERSION, kind: 'Advertisement', metadata };
    for (const status of told) {
      const { state, reason, message = '', namespace, name } = status;
      const last = known.get(keyOf(status));
      if (state !== 'Failed' || (last?.state === state && last.reason === reason)) continue;
      const text = `Service ${namespace}/${name} of the provider cannot be used: ${message}`;
      this.#options.events.event(subject, 'Warning', 'ServiceNotUsed', text);
    }
  }
}

interface EnsureResult {
  /** Kind, namespace and name of each object that stays. */
  kept: Set<string>;
  used: AddressPort[];
  /** By keyOf, what differs from the plan. */
  results: Map<string, Pick<ProviderServiceStatus, 'state' | 'reason' | 'message'>>;
  /** Because of these it is tried again. */
  errors: unknown[];
}

const providerOf = ({ metadata }: KubeObject): string => metadata.labels?.[LABEL_PROVIDER] ?? '';

const keyOf = ({ namespace, name, homeNamespace, homeName }: Partial<ProviderServiceStatus>): string =>
  `${namespace}/${name} ${homeNamespace}/${homeName}`;
