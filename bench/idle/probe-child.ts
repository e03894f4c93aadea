/** Gateways that only probe and answer, on addresses of loopback: `own` probes each of `others`, and answers them. */
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { Prober } from '../../src/network/probe/prober.ts';
import { Responder } from '../../src/network/probe/responder.ts';
import { systemSockets } from '../../src/network/probe/sockets.ts';

const { owns, others } = JSON.parse(process.argv[2] ?? '{}') as { owns: string[]; others: string[] };
const { signal } = new AbortController();
for (const own of owns) {
  const sockets = systemSockets(systemClock);
  const responder = new Responder({ clock: systemClock, log: silentLogger, sockets });
  responder.setAddress(own);
  responder.start(signal);
  const prober = new Prober({
    clock: systemClock,
    sockets,
    mtu: 1420,
    pathMtu: async () => Promise.resolve(1500),
    isFlowing: () => false,
  });
  prober.start(signal);
  prober.setTargets(others.map((address, index) => ({ clusterID: String(index), address, source: own })));
}
setInterval(() => undefined, 3_600_000);
