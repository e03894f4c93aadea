import { describe, expect, test } from '@jest/globals';

import type { WireGuardChoice } from '../../../../src/api/tunnel.ts';
import type { LinkConfig, VxlanLink } from '../../../../src/network/host/host-config.ts';
import { diffLinks, type KernelLink } from '../../../../src/network/host/links.ts';

const vxlan: VxlanLink = {
  kind: 'vxlan',
  name: 'vx',
  mtu: 1400,
  addresses: [],
  vni: 7,
  port: 4790,
  local: '10.9.0.1',
  macAddress: '02:00:00:00:00:0A',
  neighbours: [],
};
const tunnel: LinkConfig = { kind: 'wireguard', name: 'wg', mtu: 1420, addresses: [] };

const thereVxlan: KernelLink = {
  index: 5,
  name: 'vx',
  isUp: true,
  mtu: 1400,
  group: 0,
  kind: 'vxlan',
  alias: 'tributary node',
  macAddress: '02:00:00:00:00:0a',
  vxlan: { vni: 7, port: 4790, local: '10.9.0.1', isLearning: false },
};
const { alias: _, ...unmarked } = thereVxlan;
const thereTun: KernelLink = { index: 6, name: 'wg', isUp: false, mtu: 1500, group: 0, kind: 'tun' };

const empty = { remove: [], create: [], change: [], refused: [] };

const noLink = { remove: [], create: [], change: [], refused: [] };
const kernels: KernelLink = { ...thereTun, kind: 'wireguard', alias: 'tributary gateway' };
const programs: KernelLink = { ...thereTun, isUp: true, mtu: 1420, alias: 'tributary gateway' };
const by = (choice: WireGuardChoice): LinkConfig => ({ ...tunnel, by: choice });

describe('whose WireGuard there is when a gateway starts', () => {
  test('with auto, either stays: a link that carries packets is not made anew', () => {
    for (const there of [programs, { ...kernels, isUp: true, mtu: 1420 }])
      expect(diffLinks('gateway', [by('auto')], [there])).toEqual(noLink);
  });

  test("the kernel's goes where only wireguard-go may be: it would stay for ever, in the program's way", () => {
    expect(diffLinks('gateway', [by('userspace')], [kernels])).toEqual({
      ...noLink,
      remove: [kernels],
      create: [by('userspace')],
    });
  });

  test("wireguard-go's stays where only the kernel's may be, and people hear of it", () => {
    const { refused, ...others } = diffLinks('gateway', [by('kernel')], [programs]);
    expect(others).toEqual({ remove: [], create: [], change: [] });
    expect(refused[0]?.message).toContain('end wireguard-go, or choose auto');
  });

  test('what somebody else calls by that name is nobody’s to take away', () => {
    for (const choice of ['auto', 'kernel', 'userspace'] as const) {
      const diff = diffLinks('gateway', [by(choice)], [{ ...kernels, alias: 'mine' }]);
      expect({ ...diff, refused: diff.refused.length }).toEqual({ ...noLink, refused: 1 });
    }
  });
});

describe('links: what is wanted against what there is', () => {
  test('nothing to do', () => {
    expect(diffLinks('node', [vxlan], [thereVxlan])).toEqual(empty);
  });

  test('what is missing is made', () => {
    expect(diffLinks('node', [vxlan], [])).toEqual({ ...empty, create: [vxlan] });
  });

  test('what can be changed is changed, and nothing else of it', () => {
    expect(diffLinks('node', [vxlan], [{ ...thereVxlan, isUp: false }]).change).toEqual([
      { index: 5, name: 'vx', adopt: false, up: true },
    ]);
    expect(
      diffLinks('node', [vxlan], [{ ...thereVxlan, mtu: 1, macAddress: '02:00:00:00:00:0b' }]).change,
    ).toEqual([
      { index: 5, name: 'vx', adopt: false, up: false, mtu: 1400, macAddress: '02:00:00:00:00:0a' },
    ]);
  });

  test.each([{ vni: 8 }, { port: 8472 }, { local: '10.9.0.2' }, { isLearning: true }])(
    'a VXLAN with %j is made anew',
    (other) => {
      const there = {
        ...thereVxlan,
        vxlan: { vni: 7, port: 4790, local: '10.9.0.1', isLearning: false, ...other },
      };
      expect(diffLinks('node', [vxlan], [there])).toEqual({ ...empty, remove: [there], create: [vxlan] });
    },
  );

  test('one of another kind that is ours is made anew', () => {
    const there: KernelLink = { ...thereTun, name: 'vx', alias: 'tributary node' };
    expect(diffLinks('node', [vxlan], [there])).toEqual({ ...empty, remove: [there], create: [vxlan] });
  });

  test('ours that nobody wants any more goes, whether it was marked or not yet', () => {
    const half = { ...unmarked, group: 117 };
    expect(diffLinks('node', [], [thereVxlan])).toEqual({ ...empty, remove: [thereVxlan] });
    expect(diffLinks('node', [], [half])).toEqual({ ...empty, remove: [half] });
  });

  test("others' stay: another owner's, another's by alias, a group of that number on something else", () => {
    const others = [
      { ...thereVxlan, alias: 'tributary gateway' },
      { ...thereVxlan, alias: 'mine', group: 117 },
      { ...thereTun, group: 117 },
      unmarked,
    ];
    expect(diffLinks('node', [], others)).toEqual(empty);
  });

  test("somebody else's under our name is refused, by name", () => {
    for (const there of [unmarked, { ...thereVxlan, alias: 'mine' }]) {
      const diff = diffLinks('node', [vxlan], [there]);
      expect(diff).toEqual({
        ...empty,
        refused: [{ name: 'vx', message: expect.stringContaining('link vx: ') }],
      });
    }
    const kernels = { ...thereTun, kind: 'wireguard' };
    expect(diffLinks('gateway', [tunnel], [kernels]).refused).toHaveLength(1);
  });

  test('the link of wireguard-go becomes ours', () => {
    expect(diffLinks('gateway', [tunnel], [thereTun])).toEqual({
      ...empty,
      change: [{ index: 6, name: 'wg', adopt: true, up: true, mtu: 1420 }],
    });
    const ours = { ...thereTun, alias: 'tributary gateway', isUp: true, mtu: 1420 };
    expect(diffLinks('gateway', [tunnel], [ours])).toEqual(empty);
  });
});
