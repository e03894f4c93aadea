import { expect, test } from '@jest/globals';

import { gatewayElection } from '../../../src/agent/network.ts';
import { parseConfig } from '../../../src/config.ts';

const configOf = (options: Record<string, string>): ReturnType<typeof parseConfig> =>
  parseConfig({ options, env: {}, hostname: 'host' });

test('who leads is told by the name of the node, and the lease is kept over a stop', () => {
  const election = gatewayElection(configOf({ 'node-name': 'n1', 'lease-seconds': '2' }), () => undefined);
  expect(election).toMatchObject({ identity: 'n1', releaseOnStop: false });
  const { durationMs, retryMs = Infinity } = election;
  // Seen late, lapsed, noticed late: all within the two seconds.
  expect(durationMs + 2 * retryMs).toBeLessThan(2000);
});

test('without the name of its node it does not start', () => {
  expect(() => gatewayElection(configOf({}), () => undefined)).toThrow('--node-name');
});
