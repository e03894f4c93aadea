/**
 * The gateway of a peer in the network namespace of its node: answers probes, and asks, as a gateway does in a tunnel at rest. The
 * first argument is a FarEnd; it runs until its standard input ends.
 */
import { systemClock as clock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Prober } from '../../src/network/probe/prober.ts';
import { Responder } from '../../src/network/probe/responder.ts';
import { systemSockets } from '../../src/network/probe/sockets.ts';

export interface FarEnd {
  /** Its own address on the WireGuard link. */
  readonly own: string;
  /** Of the gateway that it is joined with, as it sees that. */
  readonly home: string;
  /** Where the tunnel's packets go: `host:port`. */
  readonly endpoint: string;
  /** Whether home asks while nothing flows. */
  readonly listens: boolean;
  /** Largest packet of the link, in bytes. */
  readonly mtu: number;
}

const { own, home, endpoint, listens, mtu } = JSON.parse(process.argv[2] ?? '') as FarEnd;
const log = createLogger({
  level: 'error',
  now: () => clock.now(),
  write: (line) => void process.stderr.write(line),
});
const sockets = systemSockets(clock);
const { signal } = new AbortController();
const prober = new Prober({
  clock,
  sockets,
  mtu,
  pathMtu: async () => Promise.resolve(undefined),
  isFlowing: () => false,
});
const responder = new Responder({ clock, log, sockets, asked: prober.asked });
responder.setAddress(own);
responder.start(signal);
prober.start(signal);
prober.setTargets([{ clusterID: 'home', address: home, source: own, endpoint, listens }]);
process.stdin.resume().once('end', () => process.exit(0));
