import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { tunnels } from '../../../../src/api/tunnel.ts';
import { installCommand, upgradeCommand } from '../../../../src/cli/install/install.ts';
import { nodesWithout } from '../../../../src/cli/install/wireguard.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import type { CliWorld } from '../support/cli-world.ts';
import { startCluster } from './support/cluster.ts';

/** Another choice of WireGuard, with a gateway that tells what it has found. */

const MILAN = 'milan'.padEnd(26, 'a');
const NONE = 'link tributary: this kernel has no WireGuard, and --wireguard kernel allows nothing else';

let world: CliWorld;
beforeEach(async () => {
  ({ world } = startCluster());
  expect(await world.run(installCommand, 'rome --image t:1 --yes')).toMatchObject({ code: 0 });
});
afterEach(async () => world.stop());

const statusOf = (wireguard?: string): object => ({
  connection: { gateway: 'n1', ...(wireguard !== undefined && { wireguard }) },
  conditions: [
    {
      type: 'HostConfigured',
      ...(wireguard === undefined
        ? { status: 'False', reason: 'WireGuardNotRunning', message: NONE }
        : { status: 'True', reason: 'AsExpected', message: '' }),
    },
  ],
});
const tunnel = (wireguard?: string): void =>
  void world.seed(tunnels, { metadata: { name: MILAN }, spec: {}, status: statusOf(wireguard) });

/** What the gateway says once it was started with that choice. */
function gatewaySays(choice: string, wireguard?: string): void {
  world.api.storage.subscribe(({ resource, current }) => {
    const args = JSON.stringify(current?.spec ?? {});
    if (resource !== 'deployments.apps' || !args.includes(`"--wireguard","${choice}"`)) return;
    queueMicrotask(() => {
      const there = world.api.storage.get('tunnels.tributary.dev', MILAN);
      const status = statusOf(wireguard);
      if (there !== undefined)
        world.api.storage.update('tunnels.tributary.dev', { ...there, status } as AnyObject);
    });
  });
}

test('the kernel alone is refused where the gateway has found no WireGuard in it', async () => {
  tunnel('Userspace');
  const began = world.api.log.length;
  const { code, err } = await world.run(upgradeCommand, '--wireguard kernel --yes');
  expect(code).toBe(1);
  expect(err).toBe(
    'the gateway has found no WireGuard in the kernel of n1, and --wireguard kernel allows nothing else: all tunnels would end. ' +
      'Choose --wireguard auto, which takes the kernel’s where it has it; or load the module wireguard there, and add --force\n',
  );
  expect(world.api.log.slice(began).filter((line) => /^(PATCH|DELETE|PUT)/.test(line))).toEqual([]);
});

test('who insists gets it, when the gateway says that it is there', async () => {
  tunnel('Userspace');
  gatewaySays('kernel', 'Kernel');
  const { code, out, err } = await world.run(upgradeCommand, '--wireguard kernel --force --yes');
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('ready: WireGuard of the tunnels (Kernel)\n');
});

test('where the gateway has none afterwards, its words are told, and the next upgrade goes back', async () => {
  tunnel('Userspace');
  gatewaySays('kernel');
  const { code, err } = await world.run(upgradeCommand, '--wireguard kernel --force --yes');
  expect(code).toBe(1);
  expect(err).toMatch(
    /^waited 3\d s for the tunnels to go through WireGuard of the kernel, without success: link tributary: this/,
  );
  expect(err).toContain('tributary upgrade --wireguard auto');
  gatewaySays('auto', 'Userspace');
  expect((await world.run(upgradeCommand, '--yes')).code).toBe(0);
});

test('without tunnels nothing is known, and nothing is waited for', async () => {
  const { code, out } = await world.run(upgradeCommand, '--wireguard kernel --yes');
  expect(code).toBe(0);
  expect(out).not.toContain('ready: WireGuard');
});

test('a kernel is known only where the gateway has asked it', () => {
  const having = (status: object): Parameters<typeof nodesWithout>[0][number] =>
    ({ metadata: { name: MILAN }, spec: {}, status }) as unknown as Parameters<
      typeof nodesWithout
    >[0][number];
  const all = ['auto', 'kernel', 'userspace', undefined] as const;
  const known = (status: object): unknown[] =>
    all.map((choice) => nodesWithout([having(status)], choice).join());
  expect(known(statusOf('Userspace'))).toEqual(['n1', '', '', '']);
  expect(known(statusOf())).toEqual(['', 'n1', '', '']);
  expect(known(statusOf('Kernel'))).toEqual(['', '', '', '']);
  expect(known({})).toEqual(['', '', '', '']);
});
