/**
 * One API server, from below to above: `credentials` and `kubeconfig` say where it is and who we are; `transport`
 * keeps few connections to it and finds dead ones; `http-client` speaks plain JSON; `informer` holds a true copy of
 * one kind; `controller` reconciles keys; `lease`, `leader-election`, `events`, `finalizers` and `write` are small
 * tools on top. Knows nothing of Tributary's features.
 */
export type * from './client.ts';
export { Controller } from './controller.ts';
export type {
  ControllerMetrics,
  ControllerOptions,
  ReconcileOutcome,
  ReconcileResult,
} from './controller.ts';
export type { Credentials } from './credentials.ts';
export { ClientEventRecorder } from './events.ts';
export type { EventRecorder, EventSubject, EventType } from './events.ts';
export { addFinalizer, removeFinalizer } from './finalizers.ts';
export { createClient } from './http-client.ts';
export type { ClientOptions, HttpClient } from './http-client.ts';
export { inClusterCredentials } from './in-cluster.ts';
export { Informer } from './informer.ts';
export type { InformerOptions } from './informer.ts';
export { parseKubeconfig } from './kubeconfig.ts';
export type { KubeconfigOptions } from './kubeconfig.ts';
export { LeaderElection } from './leader-election.ts';
export type { LeaderElectionOptions } from './leader-election.ts';
export { LeaseKeeper } from './lease-keeper.ts';
export type { LeaseKeeperOptions } from './lease-keeper.ts';
export { keyOf, refOf } from './store.ts';
export { dialUpgrade } from './upgrade.ts';
export type { UpgradeRequest, UpgradeResponse } from './upgrade.ts';
export { patchMetadataIfDiffers, replaceIfDiffers, replaceStatusIfDiffers } from './write.ts';
