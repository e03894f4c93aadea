import { expect, test } from '@jest/globals';

import type { Tunnel } from '../../../../src/api/tunnel.ts';
import { LastingReport, reportPerTunnel } from '../../../../src/network/gateway/host-report.ts';
import type { HostProblem } from '../../../../src/network/host/host-config.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

const FINE = { changes: 0, problems: [] };
const WRONG = { changes: 0, problems: [{ reason: 'NoWireGuard' as const, message: 'm' }] };

test('what is well is said at once; what is wrong when it has lasted', () => {
  const settled = new LastingReport();
  expect(settled.at(0)).toBeUndefined();
  settled.learn(WRONG, 0);
  expect(settled.at(2999)).toBeUndefined();
  expect(settled.at(3000)).toBe(WRONG);
  settled.learn(FINE, 3001);
  expect(settled.at(3001)).toBe(FINE);
  // A program that is started again and again, but back each time.
  for (const start of [4000, 6000, 8000]) {
    settled.learn(WRONG, start);
    settled.learn(WRONG, start + 1000);
    expect(settled.at(start + 1999)).toBe(FINE);
    settled.learn(FINE, start + 1999);
  }
  settled.learn(WRONG, 10_000);
  settled.learn({ ...WRONG, changes: 1 }, 13_000);
  expect(settled.at(13_000)).toMatchObject({ changes: 1, problems: WRONG.problems });
});

const seenAs = (name: string, pods: string, external: string): Tunnel =>
  tunnelOf(name, {
    status: {
      views: [
        { prefix: '10.1.0.0/16', as: pods, use: 'Pods' },
        { prefix: '10.70.0.0/20', as: external, use: 'External' },
      ],
    },
  });
const P = seenAs('p', '100.64.0.0/16', '100.65.0.0/20');
const Q = seenAs('q', '100.66.0.0/16', '100.67.0.0/20');

const problem = (message: string, about?: string): HostProblem => ({
  reason: 'Refused',
  message,
  ...(about !== undefined && { about }),
});

test('a problem of one peer is not that of the others; all else is everybody’s', () => {
  const problems = [
    problem('nftables'),
    problem('to q', '100.66.0.0/16'),
    problem('to the gateway of q', '100.67.0.1/32'),
    problem('to a node of ours', '10.1.1.0/24'),
    problem('to what is over all of them', '100.64.0.0/10'),
  ];
  const reportOf = reportPerTunnel({ changes: 1, problems }, [P, Q]);
  const told = (tunnel: Tunnel): string[] => reportOf(tunnel).problems.map(({ message }) => message);
  const shared = ['nftables', 'to a node of ours', 'to what is over all of them'];
  expect(told(P)).toEqual(shared);
  expect(told(Q)).toEqual([...shared, 'to q', 'to the gateway of q']);
});

test('a host that is as wanted is so for all', () => {
  expect(reportPerTunnel({ changes: 2, problems: [] }, [P])(P)).toEqual({ changes: 2, problems: [] });
});
