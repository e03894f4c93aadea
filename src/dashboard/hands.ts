import type { KubeClient } from '../kube/client.ts';

/** What an action is done with. */
export interface Hands {
  /** Carries the person's own token. */
  client: KubeClient;
  signal: AbortSignal;
}
