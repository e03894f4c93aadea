/** All benchmarks, in the order in which they run and are documented. */
import type { Bench } from './frame/bench.ts';
import { accessBench } from './access/access-bench.ts';
import { agentsBench } from './agents/agents-bench.ts';
import { idleBench } from './idle/idle-bench.ts';
import { lanBench } from './lan/lan-bench.ts';
import { linksBench } from './links/links-bench.ts';
import { networkBench } from './network/network-bench.ts';
import { outageBench } from './outage/outage-bench.ts';
import { peeringBench } from './peering/peering-bench.ts';
import { peersBench } from './peers/bench.ts';
import { burstBench } from './pods/burst-bench.ts';
import { namespacesBench } from './pods/namespaces-bench.ts';
import { restartBench } from './pods/restart-bench.ts';
import { singleBench } from './pods/single-bench.ts';
import { steadyBench } from './pods/steady-bench.ts';
import { reachBench } from './reach.ts';
import { scaleBench } from './scale/scale-bench.ts';
import { shapeBench } from './shape/shape-bench.ts';
import { slicesBench } from './slices.ts';
import { startBench } from './start/start-bench.ts';
import { tunnelsBench } from './tunnels/tunnels-bench.ts';
import { watchBench } from './watch/watch-bench.ts';

export const BENCHES: readonly Bench[] = [
  burstBench,
  steadyBench,
  singleBench,
  restartBench,
  namespacesBench,
  scaleBench,
  slicesBench,
  accessBench,
  peeringBench,
  peersBench,
  agentsBench,
  shapeBench,
  networkBench,
  outageBench,
  idleBench,
  tunnelsBench,
  linksBench,
  startBench,
  watchBench,
  reachBench,
  lanBench,
];
