import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Random } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';

/** What the parts of hosting work with. */
export interface HostingParts {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  random?: Random;
}
