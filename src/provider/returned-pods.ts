import { ANNOTATION_HOME_NAMESPACE, LABEL_HOME_UID } from '../api/names.ts';
import { pods } from '../api/resources.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Basics } from '../lib/basics.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { present } from '../lib/fields.ts';
import type { NetworkView } from './network-view.ts';

interface ReturnedPodsOptions extends Basics {
  home: KubeClient;
  network: Pick<NetworkView, 'ownOf'>;
  /** A pod here that came out of that namespace over there, and of the pod of that name in it, has changed. */
  onChange: (tenantNamespace: string, name: string) => void;
}

const BY_HOME_UID = 'home-uid';

/**
 * Pods that the foreign cluster has placed back into this one: they run here, under a pod over there, which runs under a home pod.
 * The foreign cluster says at which address; it is believed only where such a pod of its own has it. Otherwise it could direct
 * clients of a home pod to any pod here. Nothing is watched until it names an address of home's.
 */
export class ReturnedPods implements Component {
  readonly name = 'returned pods';
  readonly #options: ReturnedPodsOptions;
  readonly #abort = new AbortController();
  #found: Informer<Pod> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ReturnedPodsOptions) {
    this.#options = options;
  }

  /**
   * The address here of a pod over there that runs here; undefined where it does not, or is not known to.
   *
   * @param uid of the pod over there
   * @param address as the foreign cluster writes it
   */
  addressOf(uid: string, address: string): string | undefined {
    const own = this.#options.network.ownOf(address);
    if (own === undefined) return undefined;
    this.#found ??= this.#begin();
    return this.#at(uid, own) === undefined ? undefined : own;
  }

  /**
   * Whether a pod over there that runs here is ready, as the kubelet here says; undefined where it does not run here.
   *
   * @param uid of the pod over there
   * @param own its address here
   */
  isReady(uid: string, own: string): boolean | undefined {
    const { status } = this.#at(uid, own) ?? {};
    return status && status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  }

  #at(uid: string, own: string): Pod | undefined {
    const candidates = this.#found?.byIndex(BY_HOME_UID, uid) ?? [];
    return candidates.find(({ status }) => status?.podIPs?.some(({ ip }) => ip === own));
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#found?.stop();
    await this.#running;
  }

  #begin(): Informer<Pod> {
    const { home: client, clock, log, onChange } = this.#options;
    const informer = new Informer<Pod>({
      client,
      clock,
      log: log.named('returned-pods'),
      type: pods,
      list: { labelSelector: LABEL_HOME_UID },
      transform: slim,
      indexes: { [BY_HOME_UID]: ({ metadata }) => [metadata.labels?.[LABEL_HOME_UID] ?? ''] },
      name: this.name,
    });
    informer.onChange((_key, current, previous) => {
      const { name, annotations } = (current ?? previous)?.metadata ?? { name: '' };
      onChange(annotations?.[ANNOTATION_HOME_NAMESPACE] ?? '', name);
    });
    this.#running = informer.start(this.#abort.signal).catch((error: unknown) => {
      // It was stopped before it was filled.
      log.debug('cache not filled', { cache: informer.name, error: errorMessage(error) });
    });
    return informer;
  }
}

function slim({ metadata, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations } = metadata;
  const of = annotations?.[ANNOTATION_HOME_NAMESPACE];
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...present({ namespace }),
      labels: present({ [LABEL_HOME_UID]: labels?.[LABEL_HOME_UID] }),
      annotations: present({ [ANNOTATION_HOME_NAMESPACE]: of }),
    },
    status: present({
      podIPs: status?.podIPs,
      conditions: status?.conditions?.filter(({ type }) => type === 'Ready'),
    }),
  };
}
