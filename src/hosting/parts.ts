import type { ClusterBasics } from '../kube/client.ts';
import type { Caches } from '../kube/caches.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Random } from '../lib/backoff.ts';

/** What the parts of hosting work with. */
export interface HostingParts extends ClusterBasics {
  caches: Caches;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  random?: Random;
}
