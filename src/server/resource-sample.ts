/** Usage of one pod as metrics.k8s.io reports it, under the names and UID of home. */
export interface PodSample {
  namespace: string;
  name: string;
  uid: string;
  /** Start of the pod. */
  startTimeMs?: number;
  /** End of the window over which the rates are averages. */
  timestampMs: number;
  windowMs: number;
  containers: ContainerSample[];
}

export interface ContainerSample {
  name: string;
  /** Quantities, for example `1234567n` and `64Mi`. */
  cpu: string;
  memory: string;
  /** Start of the present run of the container. */
  startTimeMs?: number;
}

/** What the agent itself uses; a kubelet counts itself among the usage of its node, too. */
export interface OwnUsage {
  cpuSeconds: number;
  memoryBytes: number;
}
