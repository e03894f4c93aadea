import { expect, test } from '@jest/globals';
import type { Tunnel } from '../../../../src/api/tunnel.ts';
import { blamed } from '../../../../src/network/gateway/blame.ts';
import type { HostProblem } from '../../../../src/network/host/host-config.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

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
  const reportOf = blamed({ changes: 1, problems }, [P, Q]);
  const told = (tunnel: Tunnel): string[] => reportOf(tunnel).problems.map(({ message }) => message);
  const shared = ['nftables', 'to a node of ours', 'to what is over all of them'];
  expect(told(P)).toEqual(shared);
  expect(told(Q)).toEqual([...shared, 'to q', 'to the gateway of q']);
});

test('a host that is as wanted is so for all', () => {
  expect(blamed({ changes: 2, problems: [] }, [P])(P)).toEqual({ changes: 2, problems: [] });
});
