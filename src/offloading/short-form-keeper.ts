import type { LabelSelector } from '../api/label-selector.ts';
import { namespaceOffloadings } from '../api/namespace-offloading.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import { ignoring } from '../lib/errors.ts';
import { shortFormAction } from './short-form.ts';
import type { View } from './view.ts';

export interface ShortFormKeeperOptions {
  client: KubeClient;
  events: EventRecorder;
  view: View;
  selector: LabelSelector | undefined;
}

/** Makes NamespaceOffloadings that the label of a namespace, or the operator's selector, stands for. Keys are namespaces. */
export class ShortFormKeeper {
  readonly #options: ShortFormKeeperOptions;
  /** The last complaint about each namespace, by its UID: one event, however often it is looked at. */
  readonly #complaints = new Map<string, string>();

  constructor(options: ShortFormKeeperOptions) {
    this.#options = options;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<void> {
    const { client, view, selector } = this.#options;
    const namespace = view.namespace(name);
    if (namespace === undefined) return;
    const { uid } = namespace.metadata;
    const offloading = view.offloading(name);
    const action = shortFormAction({ namespace, offloading, selector, refusal: view.refusal(name) });
    if (action.kind !== 'Complain') this.#complaints.delete(uid);
    switch (action.kind) {
      case 'Nothing':
        return;
      case 'Create':
        // Made by a person meanwhile: then that one holds.
        await client.create(namespaceOffloadings, action.draft, { signal }).catch(ignoring('AlreadyExists'));
        return;
      case 'Patch':
        if (offloading === undefined) return;
        await client.patch(
          namespaceOffloadings,
          offloading.metadata,
          { type: 'merge', body: action.body },
          { signal },
        );
        return;
      case 'Delete':
        if (offloading === undefined) return;
        await client
          .delete(namespaceOffloadings, offloading.metadata, { uid: offloading.metadata.uid, signal })
          .catch(ignoring('NotFound', 'Conflict'));
        return;
      case 'Complain':
        if (this.#complaints.get(uid) === action.message) return;
        this.#complaints.set(uid, action.message);
        this.#options.events.event(
          { ...namespace, apiVersion: 'v1', kind: 'Namespace' },
          'Warning',
          action.reason,
          action.message,
        );
        return;
      default:
        action satisfies never;
    }
  }

  /** It is gone. */
  forget(uid: string): void {
    this.#complaints.delete(uid);
  }
}
