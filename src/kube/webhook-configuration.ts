import type { Hook, MutatingWebhook, ValidatingWebhook } from '../api/admission.ts';
import { APP_NAME, LABEL_APP_NAME } from '../api/manifest.ts';
import { namespaces, type ResourceType } from '../api/resources.ts';
import type { KubeObject, OwnerReference } from '../api/wire.ts';
import { deepEqual } from '../lib/equality.ts';
import { type Component, subscribing } from '../lib/lifecycle.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { FIELD_MANAGER } from './apply.ts';
import type { ClusterBasics } from './client.ts';
import { Controller, type ControllerMetrics } from './controller.ts';
import { Informer } from './informer.ts';

type Webhook = MutatingWebhook | ValidatingWebhook;

interface WebhookConfiguration extends KubeObject {
  webhooks?: Webhook[];
}

/** One MutatingWebhookConfiguration or ValidatingWebhookConfiguration. */
export interface KeptConfiguration {
  type: ResourceType<WebhookConfiguration>;
  name: string;
  /** As they should be now, from caches, with all that an API server would fill in, so that they compare. */
  wanted: () => Webhook[];
}

export interface WebhookConfigurationOptions extends ClusterBasics {
  metrics: ControllerMetrics;
  /** The project's own namespace: what is made anew goes when it goes. */
  systemNamespace: string;
  configuration: KeptConfiguration;
  /** Calls back after any answer of `wanted` may have changed. */
  onChange: (listener: () => void) => () => void;
}

/** After the first writes, no more than this, even if somebody undoes each of them. */
const WRITES = { burst: 20, perSecond: 0.2 };

/**
 * Keeps a webhook configuration exactly as it should be, whoever changes or deletes it. It stays as it is when this
 * stops: an update or a crash must not let in what is to be looked at.
 */
export class WebhookConfigurationController {
  readonly #options: WebhookConfigurationOptions;
  readonly #cache: Informer<WebhookConfiguration>;
  readonly #controller: Controller;
  readonly #writes: TokenBucket;
  /** What the server has made of our last write, as of admission webhooks of others, or defaults that we do not know. */
  #accepted: { wanted: Webhook[]; stored: Webhook[] } | undefined;

  constructor(options: WebhookConfigurationOptions) {
    this.#options = options;
    const { client, clock, log, metrics, configuration } = options;
    const { type, name } = configuration;
    const list = { fieldSelector: `metadata.name=${name}` };
    this.#cache = new Informer({ client, clock, log, type, list });
    this.#writes = new TokenBucket({ clock, ...WRITES });
    this.#controller = new Controller({
      name: `${type.kind} ${name}`,
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(signal),
      clock,
      log,
      metrics,
    });
  }

  /** In the order of their start. */
  components(): Component[] {
    const wake = (): void => this.#controller.add(this.#options.configuration.name);
    const wiring = subscribing('webhook wiring', () => {
      wake();
      return [this.#cache.onChange(wake), this.#options.onChange(wake)];
    });
    return [this.#cache, this.#controller, wiring];
  }

  async #reconcile(signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const { type, name: configuration, wanted: wantedNow } = this.#options.configuration;
    const wanted = wantedNow();
    const current = this.#cache.get(configuration);
    if (current !== undefined && this.#isAsWanted(current.webhooks ?? [], wanted)) return {};
    // Without webhooks its absence does no harm: somebody has taken us off this cluster.
    if (current === undefined && wanted.length === 0) return {};
    const waitMs = this.#writes.waitMs(1);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    this.#writes.take(1);
    const owner = await this.#owner(signal);
    if (owner === undefined) return {};
    const written = await this.#write(current, wanted, { owner, signal });
    this.#accepted = { wanted, stored: written.webhooks ?? [] };
    const names = wanted.map(({ name }) => name).join(', ');
    const webhooks = names === '' ? 'none' : names;
    this.#options.log.info('webhook configuration written', { kind: type.kind, configuration, webhooks });
    return {};
  }

  #isAsWanted(current: Webhook[], wanted: Webhook[]): boolean {
    if (deepEqual(current, wanted)) return true;
    const accepted = this.#accepted;
    return deepEqual(accepted?.wanted, wanted) && deepEqual(accepted?.stored, current);
  }

  /** By server-side apply where there is none: the only creation that can be permitted for one name. */
  async #write(
    current: WebhookConfiguration | undefined,
    webhooks: Webhook[],
    { owner, signal }: { owner: OwnerReference; signal: AbortSignal },
  ): Promise<WebhookConfiguration> {
    const { client, configuration } = this.#options;
    const { type, name } = configuration;
    if (current !== undefined) {
      const others = (current.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.uid);
      const metadata = { ...current.metadata, ownerReferences: [...others, owner] };
      return client.replace(type, { ...current, metadata, webhooks }, { signal });
    }
    const labels = { [LABEL_APP_NAME]: APP_NAME };
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: type.kind,
      metadata: { name, labels, ownerReferences: [owner] },
      webhooks,
    };
    const patch = { type: 'apply', body, fieldManager: FIELD_MANAGER, force: true } as const;
    return client.patch(type, { name }, patch, { signal });
  }

  /**
   * Our own namespace: webhooks that outlived us would hold up pods for ever. Undefined while it is being deleted:
   * what is then made anew would stay.
   */
  async #owner(signal: AbortSignal): Promise<OwnerReference | undefined> {
    const { client, systemNamespace, log } = this.#options;
    const { metadata } = await client.get(namespaces, { name: systemNamespace }, { signal });
    if (metadata.deletionTimestamp === undefined) {
      return { apiVersion: 'v1', kind: 'Namespace', name: metadata.name, uid: metadata.uid };
    }
    log.info('the webhook configuration is left alone: its namespace is being deleted');
    return undefined;
  }
}

/** How API servers come to one of our paths, and what they are to trust. */
export interface WebhookPlace {
  clientConfig: MutatingWebhook['clientConfig'];
  /** PEM. */
  bundle: string;
}

/** What all webhooks have in common. With all fields that an API server would fill in, so that they compare as equal. */
export const webhookAt = ({
  clientConfig,
  bundle,
}: WebhookPlace): Pick<
  MutatingWebhook & ValidatingWebhook,
  'admissionReviewVersions' | 'clientConfig' | 'matchPolicy' | 'objectSelector'
> => ({
  admissionReviewVersions: ['v1'],
  clientConfig: { ...clientConfig, caBundle: Buffer.from(bundle).toString('base64') },
  matchPolicy: 'Equivalent',
  objectSelector: {},
});

/** @param resource of the core group, in namespaces */
export const askedAbout = (operation: string, resource: string): object => ({
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: [operation],
  resources: [resource],
  scope: 'Namespaced',
});

/** Questions that belong together, and the configurations by which they are asked. */
export interface AdmissionPart {
  /** Before anybody asks. */
  components: Component[];
  hooks: readonly Hook[];
  configurations: (place: (path: string) => WebhookPlace) => KeptConfiguration[];
  /** Calls back after the configurations may have changed. */
  onChange: (listener: () => void) => () => void;
}
