import { describe } from '@jest/globals';
import { encode } from 'dns-packet';

import { LanSource } from '../../../../src/discovery/lan/lan-source.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { type CandidateSourceWorld, describeCandidateSource } from '../../../contract/candidate-source.ts';
import { fastClock } from '../../../support/fast-clock.ts';
import { LanWire, onlyInterface } from './support/lan-wire.ts';

const OWN_ID = 'us'.padEnd(26, 'a');
const TIMES = 20;

/** The source and every cluster that is announced are hosts of one segment; all of them are the real thing. */
async function makeWorld(): Promise<CandidateSourceWorld> {
  const wire = new LanWire();
  const clock = fastClock(TIMES);
  const clusters = new Map<string, LanSource>();
  const make = (address: string): LanSource =>
    new LanSource({
      clock,
      log: silentLogger,
      openLink: wire.open,
      listInterfaces: () => [onlyInterface(address)],
      // Two and a half seconds of this clock: longer than a busy machine may keep this process waiting.
      ttlSeconds: 50,
    });
  const source = make('10.0.0.1');
  await source.announce({ clusterID: OWN_ID, clusterName: 'us', port: 6443, protocols: [1] });
  await source.start();
  let next = 2;
  return {
    source,
    ownClusterID: OWN_ID,
    announce: async ({ clusterID, address, port, clusterName = '', protocols = [1] }) => {
      const known = clusters.get(clusterID);
      const cluster = known ?? make(`10.0.0.${next++}`);
      clusters.set(clusterID, cluster);
      await cluster.announce({ clusterID, clusterName, port, protocols }, [address]);
      if (known === undefined) await cluster.start();
    },
    withdraw: async (clusterID) => {
      await clusters.get(clusterID)?.stop();
      clusters.delete(clusterID);
    },
    fallSilent: async () => {
      wire.cut = true;
    },
    announceNonsense: async (label) => {
      const name = `${label}._tributary._tcp.local`;
      const txt = ['id=of nobody', 'v=1', 'name'].map((text) => Buffer.from(text));
      wire.deliver(
        encode({
          type: 'response',
          answers: [
            { name: '_tributary._tcp.local', type: 'PTR', ttl: 120, data: name },
            { name, type: 'SRV', ttl: 120, data: { target: `${label}.local`, port: 0 } },
            { name, type: 'TXT', ttl: 120, data: txt },
            { name: `${label}.local`, type: 'A', ttl: 120, data: '10.0.0.250' },
          ],
        }),
        { address: '10.0.0.250', port: 5353 },
      );
    },
    stop: async () => {
      await Promise.all([source, ...clusters.values()].map(async (one) => one.stop()));
    },
  };
}

describe('LAN, on a segment in memory', () => {
  describeCandidateSource({ makeWorld, carriesDetails: true, expires: true });
});
