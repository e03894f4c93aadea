import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binaries } from '../../../lab/binaries.ts';
import { freePorts } from '../../../lab/free-ports.ts';
import { Resolver } from '../../../src/discovery/wan/resolver.ts';
import { parseServers } from '../../../src/discovery/wan/exchange.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually } from '../eventually.ts';

const ZONE = 'example.org';

/** CoreDNS on loopback, with one zone from a file (or another behaviour), as a real authoritative server. */
export class CoreDns {
  readonly #directory = mkdtempSync(join(tmpdir(), 'core-dns-'));
  readonly #program: string;
  readonly port: number;
  #process: ChildProcess | undefined;
  #serial = 1;
  #ttl = 60;
  #records: readonly string[] = [];

  private constructor(program: string, port: number) {
    this.#program = program;
    this.port = port;
  }

  /** `body` of the server block; default: the zone. */
  static async start(body?: string): Promise<CoreDns> {
    const { coredns } = await binaries(undefined, ['coredns']);
    // Free for TCP, and so likely for UDP: both are needed.
    const [port = 0] = await freePorts(1);
    const server = new CoreDns(coredns, port);
    server.#write();
    await server.run(body);
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async run(body?: string): Promise<void> {
    const zone = `file ${join(this.#directory, 'zone')} ${ZONE} {\n reload 50ms\n }`;
    writeFileSync(
      join(this.#directory, 'Corefile'),
      `.:${this.port} {\n bind 127.0.0.1\n ${body ?? zone}\n}\n`,
    );
    this.#process = spawn(this.#program, ['-quiet', '-conf', join(this.#directory, 'Corefile')], {
      cwd: this.#directory,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await eventually('CoreDNS answers', async () =>
      this.#resolve('TXT').then(
        () => true,
        (error: Error) => error.message.includes('rcode'),
      ),
    );
  }

  /** Ends at once, as on a power cut. */
  async kill(): Promise<void> {
    const process = this.#process;
    this.#process = undefined;
    if (process === undefined) return;
    const ended = new Promise((resolve) => process.once('exit', resolve));
    process.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Replaces the zone; its lines are as in a zone file below `example.org.`. Resolves when it is served. */
  async zone(records: readonly string[], ttl: number = this.#ttl): Promise<void> {
    this.#serial++;
    this.#ttl = ttl;
    this.#records = records;
    this.#write();
    await eventually('the zone is served', async () => {
      const texts = await this.#resolve('TXT').catch(() => []);
      return texts.some((strings) => String(strings) === String(this.#serial));
    });
  }

  async #resolve(type: 'TXT'): Promise<unknown[]> {
    const resolver = new Resolver({
      servers: parseServers([this.address]),
      clock: systemClock,
      timeoutMs: 200,
    });
    return (await resolver.resolve(`serial.${ZONE}`, type, new AbortController().signal)).records;
  }

  #write(): void {
    const soa = `@ IN SOA ns.${ZONE}. who.${ZONE}. ${this.#serial} 7200 3600 1209600 1`;
    const lines = [
      `$ORIGIN ${ZONE}.`,
      `$TTL ${this.#ttl}`,
      soa,
      `@ IN NS ns.${ZONE}.`,
      'ns IN A 127.0.0.1',
      `serial 1 IN TXT ${this.#serial}`,
      ...this.#records,
    ];
    writeFileSync(join(this.#directory, 'zone'), `${lines.join('\n')}\n`);
  }
}

/** Lines of a zone file for one cluster. */
export function zoneLines({ clusterID, label, address, port }: ZoneCluster): string[] {
  const instance = `${label}._tributary._tcp`;
  return [
    `_tributary._tcp IN PTR ${instance}`,
    `${instance} IN SRV 0 0 ${port} ${label}`,
    `${instance} IN TXT "id=${clusterID}" "name=${label}" "v=1"`,
    `${label} IN ${address.includes(':') ? 'AAAA' : 'A'} ${address}`,
  ];
}

export interface ZoneCluster {
  clusterID: string;
  label: string;
  address: string;
  port: number;
}
