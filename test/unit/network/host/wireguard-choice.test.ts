import { expect, test } from '@jest/globals';

import type { WireGuardLink } from '../../../../src/network/host/host-config.ts';
import { KernelError } from '../../../../src/network/host/rtnetlink.ts';
import {
  hasWireGuard,
  isMadeHere,
  noWireGuard,
  wireguardOf,
} from '../../../../src/network/host/wireguard/choice.ts';

const link: WireGuardLink = { kind: 'wireguard', name: 'wg', mtu: 1420, addresses: [] };

test('the kernel says by its answer whether it has WireGuard, and nothing else is taken for that answer', () => {
  expect(hasWireGuard(new KernelError('EOPNOTSUPP'))).toBe(false);
  expect(hasWireGuard(new KernelError('EEXIST'))).toBe(true);
  for (const name of ['EPERM', 'ENOMEM', 'EBUSY']) {
    expect(() => hasWireGuard(new KernelError(name))).toThrow(KernelError);
  }
});

test('whose a link is, is told by its kind', () => {
  expect(['wireguard', 'tun', 'vxlan', undefined].map(wireguardOf)).toEqual([
    'Kernel',
    'Userspace',
    undefined,
    undefined,
  ]);
});

test('the kernel is asked for the link unless only wireguard-go may make it', () => {
  expect(isMadeHere(link)).toBe(true);
  expect(isMadeHere({ ...link, by: 'kernel' })).toBe(true);
  expect(isMadeHere({ ...link, by: 'userspace' })).toBe(false);
});

test('why there is none, and what helps, depends on the choice', () => {
  expect(noWireGuard(link)).toMatch(/kernel has no WireGuard.*wireguard-go.*container/);
  expect(noWireGuard({ ...link, by: 'kernel' })).toMatch(/load its module wireguard, or choose auto/);
  expect(noWireGuard({ ...link, by: 'userspace' })).not.toContain('kernel');
});
