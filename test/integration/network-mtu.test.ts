import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { binaries } from '../../lab/binaries.ts';
import { MtuBed, mtuBedProblem, type Middle } from './support/mtu-bed.ts';
import type { LinePrinter } from '../support/network/line-printer.ts';
import type { MtuStreamLine } from './support/mtu-stream.ts';

const problem = mtuBedProblem();
const MEGABYTE = 2 ** 20;
/** Of a transfer that was cut off; also on a machine that is busy with other tests. */
const DEADLINE_MS = 60_000;

(problem === undefined ? describe : describe.skip)(
  `the path below a tunnel (${problem ?? 'as root'})`,
  () => {
    let bed: MtuBed | undefined;

    beforeAll(async () => {
      await binaries(undefined, ['wireguard-go']);
    }, 300_000);

    afterEach(async () => {
      await bed?.down();
      bed = undefined;
    });

    const received = async (
      server: LinePrinter<MtuStreamLine>,
      more: number,
      connections = 1,
    ): Promise<void> => {
      const before = server.lines.at(-1)?.bytes ?? 0;
      await server.until(
        `${more} bytes more`,
        (line) => line.bytes >= before + more && line.connections >= connections,
        DEADLINE_MS,
      );
    };

    test.each<[Middle, string]>([
      ['router', 'a router that says so'],
      ['bridge', 'a bridge that says nothing'],
    ])(
      'a transfer goes on when it becomes narrower, behind a %s',
      async (middle) => {
        bed = await MtuBed.up(middle);
        const gateways = [bed.gateway('a'), bed.gateway('b')];
        for (const gateway of gateways) {
          await gateway.until('the size of the link', ({ alive, mtu }) => alive && mtu === 1420);
        }
        const server = bed.server();
        await server.until('the server', () => true);
        bed.send();
        await received(server, 20 * MEGABYTE);

        await bed.setMtu(1280);
        for (const gateway of gateways) {
          // 1280, less 60, in sixteens.
          await gateway.until('the size of the narrow path', ({ mtu }) => mtu === 1216);
        }
        await received(server, 20 * MEGABYTE);
        bed.send();
        await received(server, 20 * MEGABYTE, 2);
        expect(gateways.map(({ lines }) => lines.every(({ alive }) => alive))).toEqual([true, true]);

        await bed.setMtu(1500);
        // What a router has said is remembered for minutes; silence is tried again soon.
        if (middle === 'bridge') {
          for (const gateway of gateways)
            await gateway.until('the size of the link', ({ mtu }) => mtu === 1420);
        }
      },
      180_000,
    );
  },
);
