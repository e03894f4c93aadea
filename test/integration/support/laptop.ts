import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { binaries } from '../../../lab/binaries.ts';
import type { Daemon } from '../../../lab/daemon.ts';
import { ownerOf } from '../../../lab/known-daemons.ts';
import { run } from '../../../lab/run.ts';
import type { City, PeeringLab, PeerProgram } from '../../support/labs/peering-lab.ts';

const PORT = 7443;
const SET_CLOCK = pathToFileURL(join(import.meta.dirname, 'set-clock.ts'));
const SYN = 'tcp flags & (syn | ack) == syn';

/** What a laptop dials: peering endpoints, and other ports. */
export interface Dials {
  links: number;
  others: number;
}

/**
 * A cluster whose machine sleeps and moves, and another cluster that it dials. Nobody can dial the laptop. The other one may refuse
 * to be dialled.
 */
export class Laptop {
  readonly #lab: PeeringLab;
  readonly #own: City;
  readonly #other: City;
  readonly #folder = mkdtempSync(join(tmpdir(), 'tributary-laptop-'));

  constructor(lab: PeeringLab, own: City, other: City) {
    this.#lab = lab;
    this.#own = own;
    this.#other = other;
  }

  /** How far the wall clocks of both programs are from that of the machine. */
  setClocks(hours: number): void {
    writeFileSync(join(this.#folder, 'clock'), String(hours * 3_600_000).padEnd(32));
  }

  get #moved(): string {
    return this.#own.address.replace(/\d+$/, '211');
  }

  /** For both programs. */
  get program(): PeerProgram {
    const url = new URL(SET_CLOCK);
    url.searchParams.set('file', join(this.#folder, 'clock'));
    return { imports: [url.href] };
  }

  /** A kubeconfig of an account of the program: an administrator is bound by what a tether forbids, as all users are. */
  async account(): Promise<string> {
    const { kubectl } = await binaries(undefined, ['kubectl']);
    const own = this.#own.cluster.kubeconfig;
    const at = async (...args: string[]): Promise<string> => run([kubectl, '--kubeconfig', own, ...args]);
    const system = ['-n', 'tributary-system', 'create'];
    await at(...system, 'serviceaccount', 'all');
    const account = '--serviceaccount=tributary-system:all';
    await at('create', 'clusterrolebinding', 'lab-all', '--clusterrole=cluster-admin', account);
    const token = (await at(...system, 'token', 'all', '--duration=2h')).trim();
    const file = join(this.#folder, 'kubeconfig');
    writeFileSync(file, readFileSync(own));
    const config = [kubectl, '--kubeconfig', file, 'config'] as const;
    const user = (await run([...config, 'view', '-o', 'jsonpath={.contexts[0].context.user}'])).trim();
    await run([...config, 'unset', `users.${user}`]);
    await run([...config, 'set-credentials', user, `--token=${token}`]);
    return file;
  }

  /** Closes the door to the laptop, and begins to count what it dials. */
  async close(): Promise<void> {
    const there = `ip daddr ${this.#other.address} ${SYN}`;
    await this.#rules(this.#own, 'dials', [
      'counter links {}',
      'counter others {}',
      `chain out { type filter hook output priority 0; ${there} tcp dport ${PORT} counter name links; ${there} tcp dport != ${PORT} counter name others; }`,
      `chain in { type filter hook input priority 0; ip saddr ${this.#other.address} ${SYN} drop; }`,
    ]);
  }

  async dials(): Promise<Dials> {
    const printed = await this.#own.cluster
      .node()
      .exec(['nft', '-j', 'list', 'counters', 'table', 'inet', 'dials']);
    const { nftables } = JSON.parse(printed) as {
      nftables: { counter?: { name: string; packets: number } }[];
    };
    const of = (name: string): number =>
      nftables.find(({ counter }) => counter?.name === name)?.counter?.packets ?? 0;
    return { links: of('links'), others: of('others') };
  }

  async since(before: Dials): Promise<Dials> {
    const { links, others } = await this.dials();
    return { links: links - before.links, others: others - before.others };
  }

  /** All its processes stand still. */
  sleep(): void {
    for (const daemon of this.#daemons()) daemon.stop();
  }

  wake(): void {
    for (const daemon of this.#daemons()) daemon.cont();
  }

  /**
   * It has another address, and no packet passes to or from the one before. That one stays for its own API server, which a real
   * laptop would reach by another name.
   */
  async move(): Promise<string> {
    const { address: before } = this.#own;
    const after = this.#moved;
    const { address: other } = this.#other;
    const node = this.#own.cluster.node();
    await node.exec(['ip', 'addr', 'add', `${after}/24`, 'dev', 'eth0']);
    await node.exec(['ip', 'route', 'replace', `${other}/32`, 'dev', 'eth0', 'src', after]);
    await this.#rules(this.#own, 'moved', [
      `chain out { type filter hook output priority 0; ip saddr ${before} ip daddr ${other} drop; }`,
      `chain in { type filter hook input priority 0; ip saddr ${other} ip daddr ${before} drop; }`,
    ]);
    return after;
  }

  /** The other cluster refuses each connection, and resets those that there are. */
  async refuse(): Promise<void> {
    const from = `ip saddr { ${this.#own.address}, ${this.#moved} }`;
    await this.#rules(this.#other, 'refused', [
      `chain in { type filter hook input priority 0; ${from} meta l4proto tcp reject with tcp reset; }`,
    ]);
  }

  async admit(): Promise<void> {
    await this.#rules(this.#other, 'refused', []);
  }

  /** All as it was: the lab has a next user. */
  async restore(): Promise<void> {
    this.wake();
    await this.admit();
    await this.#rules(this.#own, 'moved', []);
    await this.#rules(this.#own, 'dials', []);
    const node = this.#own.cluster.node();
    const ip = async (...args: string[]): Promise<unknown> =>
      node.exec(['ip', ...args]).catch(() => undefined);
    await ip('route', 'del', `${this.#other.address}/32`);
    await ip('addr', 'del', `${this.#moved}/24`, 'dev', 'eth0');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #daemons(): Daemon[] {
    const { cluster } = this.#own;
    const owners = new Set([cluster.name, ...cluster.nodes.map(({ name }) => name)]);
    return [...this.#lab.lab.daemons().values()].filter(({ name }) => owners.has(ownerOf(name)));
  }

  async #rules(city: City, table: string, chains: readonly string[]): Promise<void> {
    const made = chains.length === 0 ? '' : `table inet ${table} {\n${chains.join('\n')}\n}\n`;
    const stdin = `table inet ${table}\ndelete table inet ${table}\n${made}`;
    await city.cluster.node().exec(['nft', '-f', '-'], { stdin });
  }
}
