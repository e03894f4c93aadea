import type { Pod } from '../../api/wire.ts';
import type { RawRequest, RawResponse } from '../../kube/client.ts';
import type { UpgradeRequest, UpgradeResponse } from '../../kube/upgrade.ts';

/** `bytes`: the end of the log, each line with its time. `gone`: why there is none, for people. */
export type KeptLog = { bytes: Buffer } | { gone: string };

/** Where the body of a home pod is. */
export interface PodLocation {
  /** Path of the remote pod, `/api/v1/namespaces/<tenant>/pods/<remote>`; its segments need no encoding. */
  path: string;
  /** UID of the home pod, for the variants of the streaming paths that name one. */
  uid: string;
  /** What is left of its log, where it cannot be read there any more. */
  keptLog?: KeptLog;
}

/** A home pod, and where it matters one of its containers, by the names in a path. */
export interface PodQuestion {
  namespace: string;
  pod: string;
  container?: string;
}

/** `uid`: of the home pod. */
export type Located =
  /** No such pod is bound to this node. */
  | { kind: 'no pod' }
  /** It has no such container; init and ephemeral ones count. */
  | { kind: 'no container'; uid: string }
  /** Whether it has a body is not known now; `why`: for people. */
  | { kind: 'unknown'; uid: string; why: string }
  /** It has none, as long as it waits to be begun, or none any more. `pod`: as home shows it. */
  | { kind: 'no body'; uid: string; pod: Pod }
  | ({ kind: 'body' } & PodLocation);

/** What the kubelet API asks of the rest of the agent. */
export interface KubeletBackend {
  /** Waits for a few seconds where that is about to be known, but not longer than the signal says. Never rejects. */
  locate(question: PodQuestion, signal: AbortSignal): Promise<Located>;
  /** To the foreign API server. */
  raw(request: RawRequest): Promise<RawResponse>;
  /** To the foreign API server, over a connection of its own; Host and credentials are added. */
  upgrade(request: UpgradeRequest & { signal: AbortSignal }): Promise<UpgradeResponse>;
  /** Home pods bound to the node. */
  pods(): Pod[];
  /** Those of them with a running container. */
  runningPods(): Pod[];
  /** stats/v1alpha1 Summary. */
  statsSummary(): Promise<object>;
  /** Prometheus text. */
  metricsResource(): Promise<string>;
  /** The agent's own metrics as Prometheus text; without it /metrics is not served. */
  metrics?(): Promise<string>;
  configz(): object;
  /** The kubelet's `syncloop` check; `message` says what is wrong. */
  healthz(): { ok: boolean; message: string };
}
