/** A workload can do one thing: start a cluster. */
import type { Journal } from './journal.ts';
import type { ControlPlane } from './control-plane.ts';
import type { ClusterSpec, LabSpec } from './spec.ts';

export interface ClusterStart {
  readonly lab: LabSpec;
  readonly cluster: ClusterSpec;
  /** Everything is recorded here before it is made; pass it to `Daemon.start`. */
  readonly journal: Journal;
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Resolves when every node of the cluster is Ready. Data goes to `lab.dataDirectory`/`cluster.name`. */
export type StartCluster = (start: ClusterStart) => Promise<ControlPlane>;
