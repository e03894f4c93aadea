/** avahi-daemon on a host of the lab, asked by its own programs. */
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Daemon } from '../../../lab/daemon.ts';
import { RunError, type RunOptions } from '../../../lab/run.ts';
import { eventually } from '../eventually.ts';
import { endChild, SOON_MS } from './line-printer.ts';

type Command = readonly [string, ...string[]];
type Environment = Record<string, string>;

/** Where its programs run. */
export interface AvahiHost {
  run(command: Command, env: Environment, options?: Pick<RunOptions, 'timeoutMs'>): Promise<string>;
  /** A program that ends with the host at the latest. */
  spawn(command: Command, env: Environment): ChildProcess;
}

/** One line of `avahi-browse -p`. */
export interface AvahiService {
  interface: string;
  family: 'IPv4' | 'IPv6';
  name: string;
  host: string;
  address: string;
  port: number;
  txt: string[];
}

/** `avahi-browse -t` never ends where a service goes while it is being resolved (avahi issue 264). It gives up resolving after 5 s. */
const LOOK_MS = 20_000;
const MOST_HUNG = 3;
const wasKilled = (error: unknown): boolean =>
  error instanceof RunError && (error.cause as { killed?: boolean } | undefined)?.killed === true;

export class Avahi {
  readonly daemon: Daemon;
  readonly #host: AvahiHost;
  readonly #env: Record<string, string>;

  constructor(host: AvahiHost, bus: string, daemon: Daemon) {
    this.#host = host;
    this.#env = { DBUS_SYSTEM_BUS_ADDRESS: bus, LC_ALL: 'C.UTF-8' };
    this.daemon = daemon;
  }

  /** What it finds of our type, resolved. */
  async browse(): Promise<AvahiService[]> {
    for (let hung = 0; hung < MOST_HUNG; hung++) {
      try {
        return await this.#look();
      } catch (error) {
        if (!wasKilled(error)) throw error;
      }
    }
    throw new Error(`avahi-browse did not end ${MOST_HUNG} times, within ${LOOK_MS} ms each`);
  }

  async #look(): Promise<AvahiService[]> {
    const command = ['avahi-browse', '-rpt', '_tributary._tcp'] as const;
    const printed = await this.#host.run(command, this.#env, { timeoutMs: LOOK_MS });
    return printed.split('\n').flatMap((line) => {
      const [sign, link = '', family, name = '', , , host = '', address = '', port, txt = ''] =
        line.split(';');
      if (sign !== '=') return [];
      const strings = [...txt.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text);
      return [
        {
          interface: link,
          family: family as 'IPv4',
          name: plain(name),
          host,
          address,
          port: Number(port),
          txt: strings,
        },
      ];
    });
  }

  /** Follows what comes (`+`) and goes (`-`) of our type, with the time of each. */
  watch(): { sign: string; name: string; family: string; at: number }[] {
    const seen: ReturnType<Avahi['watch']> = [];
    // Without a terminal it would buffer its output.
    const child = this.#host.spawn(['stdbuf', '-oL', 'avahi-browse', '-p', '_tributary._tcp'], this.#env);
    if (child.stdout === null) throw new Error('avahi-browse has no standard output');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [sign = '', , family = '', name = ''] = line.split(';');
      seen.push({ sign, name: plain(name), family, at: Date.now() });
    });
    return seen;
  }

  /** The address that it has for a host name. */
  async resolve(family: 4 | 6, name: string): Promise<string> {
    const printed = await this.#host.run(['avahi-resolve', `-${family}`, '-n', name], this.#env);
    return printed.trim().split('\t')[1] ?? '';
  }

  /** Publishes a service until the returned function is called. */
  async publish(name: string, port: number, txt: readonly string[]): Promise<() => Promise<void>> {
    const child = this.#host.spawn(
      ['avahi-publish', '-s', name, '_tributary._tcp', `${port}`, ...txt],
      this.#env,
    );
    let said = '';
    child.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await eventually(`avahi publishes ${name}`, () => said.includes('Established'), SOON_MS);
    return async () => endChild(child, 'SIGTERM');
  }
}

/** Within labels, avahi writes characters other than letters and digits as decimal numbers. */
const plain = (name: string): string =>
  name.replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(Number(code)));
