/** The WireGuard driver with wireguard-go: two network namespaces on one underlay, a tunnel between them. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import { binaries } from '../../lab/binaries.ts';
import type {
  WireGuardConfig,
  WireGuardPeerConfig,
  WireGuardPeerState,
} from '../../src/network/host/host-config.ts';
import { generateKey, type KeyPair } from '../../src/network/host/wireguard/keys.ts';
import { eventually } from '../support/eventually.ts';
import { Netns, netnsProblem } from '../support/network/in-netns.ts';

const MODULE = 'network/host/wireguard/wireguard.ts';
const PORT = 51_820;

const problem = netnsProblem();
if (problem !== undefined) process.stderr.write(`WireGuard is not tested: ${problem}\n`);
const describeAsRoot = problem === undefined ? describe : describe.skip;

/** One end: `number` is 1 or 2. */
class End {
  readonly link: string;
  readonly netns: Netns;
  readonly #tunnel: ChildProcess;
  keys: KeyPair = generateKey();

  private constructor(number: number, netns: Netns, program: string) {
    this.link = `wt${number}x${process.pid}`.slice(0, 15);
    this.netns = netns;
    this.#tunnel = spawn('nsenter', [`--net=/run/netns/${netns.name}`, program, '-f', this.link], {
      stdio: 'ignore',
      env: { WG_PROCESS_FOREGROUND: '1', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    });
  }

  static async up(number: number, program: string): Promise<End> {
    const netns = await Netns.up(`wg${process.pid}-${number}`);
    const end = new End(number, netns, program);
    await eventually('the link', async () => end.isReady());
    await netns.run(['ip', 'addr', 'add', `10.99.0.${number}/24`, 'dev', end.link]);
    await netns.run(['ip', 'link', 'set', end.link, 'up', 'mtu', '1380']);
    return end;
  }

  isReady = async (link = this.link): Promise<boolean> => this.netns.call(MODULE, 'isWireGuardReady', link);

  config(peers: readonly WireGuardPeerConfig[]): WireGuardConfig {
    return { link: this.link, port: PORT, privateKey: this.keys.privateKey, peers };
  }

  set = async (...peers: WireGuardPeerConfig[]): Promise<number> =>
    this.netns.call(MODULE, 'setWireGuard', this.config(peers));

  peers = async (): Promise<WireGuardPeerState[]> => this.netns.call(MODULE, 'wireguardPeers', this.link);

  show = async (what: string): Promise<string> =>
    (await this.netns.run(['wg', 'show', this.link, what])).trim();

  reaches = async (address: string): Promise<boolean> =>
    this.netns
      .run(['busybox', 'ping', '-c', '1', '-W', '1', address])
      .then(() => true)
      .catch(() => false);

  async down(): Promise<void> {
    this.#tunnel.kill('SIGTERM');
    if (this.#tunnel.exitCode === null && this.#tunnel.signalCode === null) await once(this.#tunnel, 'exit');
    await this.netns.down();
  }
}

describeAsRoot('the WireGuard driver', () => {
  let one: End;
  let two: End;

  beforeAll(async () => {
    const programs = await binaries(undefined, ['wireguard-go']);
    one = await End.up(1, programs['wireguard-go']);
    two = await End.up(2, programs['wireguard-go']);
    await one.netns.run([
      'ip',
      'link',
      'add',
      'un',
      'type',
      'veth',
      'peer',
      'name',
      'un',
      'netns',
      two.netns.name,
    ]);
    for (const [end, number] of [
      [one, 1],
      [two, 2],
    ] as const) {
      await end.netns.run(['ip', 'addr', 'add', `172.31.0.${number}/24`, 'dev', 'un']);
      await end.netns.run(['ip', 'link', 'set', 'un', 'up']);
    }
  });
  beforeEach(async () => {
    for (const end of [one, two]) {
      end.keys = generateKey();
      await end.set();
    }
  });
  afterAll(async () => {
    await one.down();
    await two.down();
  });

  const peerOf = (end: End, more: Partial<WireGuardPeerConfig> = {}): WireGuardPeerConfig => ({
    publicKey: end.keys.publicKey,
    endpoint: `172.31.0.${end === one ? 1 : 2}:${PORT}`,
    allowedIPs: [`10.99.0.${end === one ? 1 : 2}/32`],
    keepalive: 5,
    ...more,
  });

  it('brings up a tunnel, and writes nothing the second time', async () => {
    const began = Date.now();
    // The peer, its endpoint, keepalive and prefixes.
    expect(await one.set(peerOf(two))).toBe(4);
    expect(await two.set(peerOf(one))).toBe(4);
    await eventually('a ping', async () => one.reaches('10.99.0.2'));
    expect(await one.set(peerOf(two))).toBe(0);
    expect(await two.set(peerOf(one))).toBe(0);
    const [peer] = await one.peers();
    expect(peer).toMatchObject({ publicKey: two.keys.publicKey, endpoint: `172.31.0.2:${PORT}` });
    // Whole seconds, in the kernel's clock.
    expect(peer?.handshakeMs).toBeGreaterThan(began - 1000);
    expect(peer?.handshakeMs).toBeLessThan(Date.now() + 1000);
    expect(peer?.receivedBytes).toBeGreaterThan(0);
    expect(peer?.sentBytes).toBeGreaterThan(0);
  });

  it('is not ready where there is no link, or one of another kind', async () => {
    expect(await one.isReady()).toBe(true);
    expect(await one.isReady('un')).toBe(false);
    expect(await one.isReady('absent')).toBe(false);
    expect(await one.netns.call(MODULE, 'wireguardPeers', 'absent')).toEqual([]);
    const config = { ...one.config([]), link: 'absent' };
    await expect(one.netns.call(MODULE, 'setWireGuard', config)).rejects.toMatchObject({ code: 'NotFound' });
  });

  it('leaves a learnt endpoint alone, until the configured one changes', async () => {
    await one.set(peerOf(two, { endpoint: `172.31.0.2:${PORT}` }));
    await two.set(peerOf(one));
    await eventually('a ping', async () => two.reaches('10.99.0.1'));
    await two.netns.run(['wg', 'set', two.link, 'listen-port', `${PORT + 7}`]);
    const learnt = `172.31.0.2:${PORT + 7}`;
    await eventually(
      'the new endpoint',
      async () => (await two.reaches('10.99.0.1')) && (await one.peers())[0]?.endpoint === learnt,
    );
    expect(await one.set(peerOf(two, { endpoint: `172.31.0.2:${PORT}` }))).toBe(0);
    expect((await one.peers())[0]?.endpoint).toBe(learnt);
    // What a program that has just started does: it has given no endpoint yet.
    const fresh = Netns.enter(one.netns.name);
    const config = one.config([peerOf(two, { endpoint: `172.31.0.2:${PORT}` })]);
    expect(await fresh.call(MODULE, 'setWireGuard', config)).toBe(0);
    await fresh.leave();
    // Otherwise its next packet, within 5 s, would teach its own endpoint again.
    await two.set();
    expect(await one.set(peerOf(two, { endpoint: '172.31.0.2:4000' }))).toBe(1);
    expect(await one.show('endpoints')).toContain('172.31.0.2:4000');
  });

  it('corrects the endpoint of a peer that never answered', async () => {
    await one.set(peerOf(two));
    await one.netns.run(['wg', 'set', one.link, 'peer', two.keys.publicKey, 'endpoint', '172.31.0.9:9']);
    expect(await one.set(peerOf(two))).toBe(1);
    expect(await one.show('endpoints')).toContain(`172.31.0.2:${PORT}`);
  });

  it('sets, changes and removes preshared keys', async () => {
    const presharedKey = generateKey().privateKey;
    expect(await one.set(peerOf(two, { presharedKey }))).toBe(5);
    await two.set(peerOf(one, { presharedKey }));
    await eventually('a ping', async () => one.reaches('10.99.0.2'));
    expect(await one.show('preshared-keys')).toContain(presharedKey);
    const other = generateKey().privateKey;
    expect(await one.set(peerOf(two, { presharedKey: other }))).toBe(1);
    expect(await one.show('preshared-keys')).toContain(other);
    expect(await one.show('allowed-ips')).toContain('10.99.0.2/32');
    expect(await one.set(peerOf(two))).toBe(1);
    expect(await one.show('preshared-keys')).toContain('(none)');
    expect(await one.set(peerOf(two))).toBe(0);
  });

  it('rotates the key of an end', async () => {
    await one.set(peerOf(two));
    await two.set(peerOf(one));
    await eventually('a ping', async () => one.reaches('10.99.0.2'));
    one.keys = generateKey();
    expect(await one.set(peerOf(two))).toBe(1);
    expect(await one.show('public-key')).toBe(one.keys.publicKey);
    // The old key goes, the new one comes with endpoint, keepalive and prefixes.
    expect(await two.set(peerOf(one))).toBe(5);
    await eventually('a ping with the new key', async () => two.reaches('10.99.0.1'));
  });

  it('changes the prefixes of one peer and leaves the others alone', async () => {
    const others = Array.from({ length: 130 }, (_, index): WireGuardPeerConfig => ({
      publicKey: generateKey().publicKey,
      presharedKey: generateKey().privateKey,
      allowedIPs: [`10.50.${index}.0/24`, `fd00:${index.toString(16)}::/64`],
      keepalive: 0,
    }));
    await one.set(peerOf(two), ...others);
    expect(await one.set(peerOf(two), ...others)).toBe(0);
    const before = (await one.show('allowed-ips'))
      .split('\n')
      .filter((line) => !line.startsWith(two.keys.publicKey));
    expect(await one.set(peerOf(two, { allowedIPs: ['10.99.0.2/32', '10.60.0.0/16'] }), ...others)).toBe(1);
    const after = (await one.show('allowed-ips'))
      .split('\n')
      .filter((line) => !line.startsWith(two.keys.publicKey));
    expect(after.toSorted()).toEqual(before.toSorted());
    expect(await one.set(peerOf(two, { allowedIPs: [] }), ...others)).toBe(1);
    expect(await one.show('allowed-ips')).toContain(`${two.keys.publicKey}\t(none)`);
    expect(await one.set(peerOf(two))).toBe(others.length + 1);
    expect(await one.peers()).toHaveLength(1);
  });

  it('hands a prefix from one peer to another', async () => {
    const [a, b] = [generateKey().publicKey, generateKey().publicKey];
    const plain = { keepalive: 0 };
    const peers = (first: string, second: string): WireGuardPeerConfig[] => [
      { ...plain, publicKey: a, allowedIPs: [first] },
      { ...plain, publicKey: b, allowedIPs: [second] },
    ];
    await one.set(...peers('10.1.0.0/16', '10.2.0.0/16'));
    await one.set(...peers('10.2.0.0/16', '10.1.0.0/16'));
    expect(await one.set(...peers('10.2.0.0/16', '10.1.0.0/16'))).toBe(0);
    expect(await one.show('allowed-ips')).toContain(`${a}\t10.2.0.0/16`);
  });
});
