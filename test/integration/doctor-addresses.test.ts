import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { binaries } from '../../lab/binaries.ts';
import { type Tunnel, tunnels } from '../../src/api/tunnel.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { contains, parseAddress, parsePrefix } from '../../src/lib/prefix.ts';
import { Doctor } from '../support/doctor.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';
import { short } from '../support/long.ts';

/** Addresses as which a peer is seen, and networks of an office: two whole peerings with gateways and real tunnels. */

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`the doctor is not tested on addresses: ${problem}\n`);
/** Routes are read every 30 s. What it finds is tested on objects by test/unit/doctor. */
const isLong = short('networks of an office that the doctor finds', { short: 0, long: 2 }) > 0;
const describeInLab = problem === undefined && isLong ? describe : describe.skip;

const PODS = '10.244.0.0/16';
/** Each its own: wireguard-go has a socket of that name in the file system of the machine. */
const linkOf = ({ name }: City): string => `w${process.pid % 100_000}${name.slice(0, 4)}`;
const CHECK = { check: 'addresses' };

describeInLab('the doctor and networks of an office', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;
  let doctor: Doctor;

  const options = (city: City): Record<string, string> => ({
    'pod-cidr': PODS,
    network: 'on',
    'node-name': city.cluster.node().name,
    'wireguard-interface': linkOf(city),
    'tunnel-endpoint': `${city.address}:51820`,
    'probe-seconds': '1',
    'lease-seconds': '2',
  });

  beforeAll(async () => {
    doctor = await Doctor.ready();
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    const { 'wireguard-go': wireguard } = await binaries(undefined, ['wireguard-go']);
    for (const city of [rome, milan]) {
      const command = [wireguard, '-f', linkOf(city)] as const;
      city.cluster.node().spawn('wireguard', [...command], { WG_PROCESS_FOREGROUND: '1' });
    }
    await Promise.all([rome.run(options(rome)), milan.run(options(milan))]);
    await milan.lend();
    await rome.borrow();
    await rome.inPhase(milan.id, 'outgoing', 'Established');
    await tunnelIsWell();
  });
  afterAll(async () => {
    await lab?.down();
    doctor?.gone();
  });

  const at = ({ cluster }: City): string => cluster.kubeconfig;
  const tunnel = async (): Promise<Tunnel | undefined> =>
    rome.client.get(tunnels, { name: milan.id }).catch(ignoring('NotFound'));
  const view = async (): Promise<string | undefined> =>
    (await tunnel())?.status?.views?.find(({ use }) => use === 'Pods')?.as;
  async function tunnelIsWell(): Promise<string> {
    await doctor.isContent(at(rome), { check: 'tunnels' });
    return until('rome sees the pods of milan', view);
  }
  const covers = (range: string, host: string): boolean => {
    const address = parseAddress(host);
    return address !== undefined && contains(parsePrefix(range), address);
  };
  const way = async (host: string): Promise<string> => rome.cluster.node().exec(['ip', 'route', 'get', host]);

  /** The router of an office, here the host of milan, leads to a network within what rome sees as pods of milan. */
  async function openOffice(): Promise<{ host: string; finding: Finding }> {
    const before = await tunnelIsWell();
    await doctor.isContent(at(rome), CHECK);
    const host = before.replace(/\.0\.0\/16$/u, '.8.1');
    expect(await way(host)).toContain(`dev ${linkOf(rome)}`);
    const network = host.replace(/\.1$/u, '.0/24');
    await rome.cluster.node().exec(['ip', 'route', 'add', network, 'via', milan.address]);
    const finding = await doctor.finds(at(rome), { ...CHECK, says: /one hides the other/u });
    expect(finding.cameBack).toContain(`${before} overlaps ${network}`);
    return { host, finding };
  }
  /** The peer is seen at other addresses, at which packets reach it; the office is reached, too. */
  async function isRepaired(host: string): Promise<void> {
    await doctor.isContent(at(rome), CHECK);
    const after = await tunnelIsWell();
    expect(covers(after, host)).toBe(false);
    expect(await way(host)).toContain(`via ${milan.address}`);
    // A gateway that has just started says what the one before said, until it has set the host.
    await until('the other addresses lead into the tunnel', async () =>
      (await way(after.replace(/\.0\/16$/u, '.1'))).includes(`dev ${linkOf(rome)}`),
    );
  }

  test('a route to an office is on the host of the gateway', async () => {
    const { host, finding } = await openOffice();
    await doctor.follow(at(rome), finding);
    await isRepaired(host);
  });

  test('the same, and the range is kept free for good', async () => {
    const { host, finding } = await openOffice();
    const [, reserved = ''] = /--reserved-cidrs (\S+)/u.exec(finding.remedy ?? '') ?? [];
    expect(covers(reserved, host)).toBe(true);
    await rome.kill();
    await rome.run({ ...options(rome), 'reserved-cidrs': reserved });
    await isRepaired(host);
  });
});
