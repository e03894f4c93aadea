/** A gateway's measurements in a process of their own: what it finds out becomes the MTU of its route to the peer. */
import { execFileSync } from 'node:child_process';

import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { createHost } from '../../../src/network/host/host.ts';
import { Prober } from '../../../src/network/probe/prober.ts';
import { Responder } from '../../../src/network/probe/responder.ts';
import { systemSockets } from '../../../src/network/probe/sockets.ts';

export interface MtuGatewayOptions {
  link: string;
  own: string;
  peer: string;
  endpoint: string;
  /** Of the peer's pods. */
  view: string;
}

export interface MtuGatewayLine {
  event: 'result';
  alive: boolean;
  mtu?: number;
  rttMs?: number;
}

const { link, own, peer, endpoint, view } = JSON.parse(process.argv[2] ?? '') as MtuGatewayOptions;
const { signal } = new AbortController();
const host = await createHost({ clock: systemClock, log: silentLogger });
const sockets = systemSockets(systemClock);
const responder = new Responder({ clock: systemClock, log: silentLogger, sockets });
const prober = new Prober({
  clock: systemClock,
  sockets,
  mtu: 1420,
  pathMtu: async (address) => host.pathMtu(address),
});
prober.onChange((clusterID) => {
  const result = prober.results().get(clusterID);
  if (result === undefined) return;
  const { alive, mtu = 1420, rttMs } = result;
  execFileSync('ip', ['route', 'replace', view, 'dev', link, 'metric', '50', 'mtu', String(mtu)]);
  const line: MtuGatewayLine = {
    event: 'result',
    alive,
    ...(result.mtu !== undefined && { mtu }),
    ...(rttMs !== undefined && { rttMs }),
  };
  console.log(JSON.stringify(line));
});
responder.setAddress(own);
prober.setTargets([{ clusterID: 'peer', address: peer, source: own, endpoint }]);
responder.start(signal);
prober.start(signal);
process.stdin.on('end', () => process.exit(0)).resume();
