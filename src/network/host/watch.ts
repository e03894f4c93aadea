import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Basics } from '../../lib/basics.ts';
import type { Readable, Writable } from 'node:stream';

export interface WatchOptions extends Basics {
  /** Something of the host's network has changed, or may have. */
  changed: () => void;
}

/** Path of the program: beside the built one (tools/build-program.ts), or beside this file. */
const PROGRAM = join(import.meta.dirname, `watch-process${extname(import.meta.filename)}`);
/** The program needs little memory, and runs on every node. */
const FLAGS = ['--max-old-space-size=32', '--max-semi-space-size=1'];
const RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;

/** Runs the program that tells of changes of the host's network; see watch-process.ts. Never keeps this process alive. */
export class Watch {
  readonly #options: WatchOptions;
  #child: ChildProcessByStdio<Writable, Readable, null> | undefined;
  #cancel: () => void = () => undefined;
  #restartMs = RESTART_MS;
  #isClosed = false;
  #ourLinks = '';

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#start();
  }

  /** The program ends by itself when its input ends, also when this process is killed. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#child?.stdin.destroy();
    this.#child = undefined;
  }

  /** Changes of the neighbours of these links count, by their indexes; no others until it is called. */
  setOurLinks(indexes: ReadonlySet<number>): void {
    const ourLinks = [...indexes].toSorted((a, b) => a - b).join(' ');
    if (ourLinks === this.#ourLinks) return;
    this.#ourLinks = ourLinks;
    this.#tellOurLinks();
  }

  #tellOurLinks(): void {
    this.#child?.stdin.write(`${this.#ourLinks}\n`);
  }

  #start(): void {
    const child = spawn(process.execPath, [...FLAGS, PROGRAM], { stdio: ['pipe', 'pipe', 'ignore'] });
    this.#child = child;
    let why: string | undefined;
    child.unref();
    for (const stream of [child.stdin, child.stdout]) (stream as Socket).unref();
    child.stdin.on('error', () => undefined);
    this.#tellOurLinks();
    child.on('error', (error) => this.#ended(child, error.message));
    child.on('exit', (code, signal) => this.#ended(child, why ?? signal ?? `exit status ${code}`));
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('error ')) why = line.slice('error '.length);
      else this.#heard(line);
    });
  }

  #heard(line: string): void {
    if (this.#isClosed) return;
    // What happened before the program was ready is found by a look at the host.
    if (line === 'ready') this.#restartMs = RESTART_MS;
    this.#options.changed();
  }

  /** The program could not take so many changes at once, or something is wrong with it. A look at the host finds what was lost. */
  #ended(child: unknown, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#options.log.warn('The watch on the network of this host ended and is started again', { why });
    this.#options.changed();
    this.#cancel = this.#options.clock.after(this.#restartMs, () => this.#start());
    this.#restartMs = Math.min(this.#restartMs * 2, LONGEST_RESTART_MS);
  }
}
