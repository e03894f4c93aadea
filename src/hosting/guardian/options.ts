import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ControllerMetrics } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

export interface GuardianOptions {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  random?: Random;
  /** What is kept of the pods of one peer takes so much at most. */
  heldBytes?: number;
}

/**
 * Whether a home is there. `Unknown`: it has never renewed its Lease, or we have not watched for long enough to say. `Late`:
 * half of the time of its Lease has passed; nothing may be done for it yet, but whoever waits for more learns too late.
 */
export type HomeState = 'Unknown' | 'Present' | 'Late' | 'Away';
