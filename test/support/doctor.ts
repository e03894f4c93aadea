/** Asks `tributary doctor` as a person does, and does to the letter what it says. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { binaries } from '../../lab/binaries.ts';
import { mainModule } from '../../lab/own-program.ts';
import { run } from '../../lab/run.ts';
import type { Command } from '../../src/cli/command.ts';
import { doctorCommand } from '../../src/cli/doctor/doctor.ts';
import { openCluster } from '../../src/cli/peering/environment.ts';
import type { Finding, Level } from '../../src/doctor/finding.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from './eventually.ts';

const REST = { least: 250, most: 1000 };

export interface Wanted {
  check: string;
  level?: Level;
  /** Part of what came back. */
  says?: RegExp;
  /** Part of what was tried. */
  about?: RegExp;
}

export class Doctor {
  /** Where `kubectl` and `tributary` are found. */
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async ready(): Promise<Doctor> {
    const path = mkdtempSync(join(tmpdir(), 'doctor-'));
    const { kubectl } = await binaries(undefined, ['kubectl']);
    symlinkSync(kubectl, join(path, 'kubectl'));
    writeFileSync(join(path, 'tributary'), `#!/bin/sh\nexec ${process.execPath} ${mainModule()} "$@"\n`, {
      mode: 0o755,
    });
    return new Doctor(path);
  }

  gone(): void {
    rmSync(this.#path, { recursive: true, force: true });
  }

  /** Any command, in this process: a program of its own takes a second to start. Its standard output, and the exit code. */
  async command(
    command: Command,
    kubeconfig: string,
    args: readonly string[],
  ): Promise<{ out: string; code: number }> {
    let out = '';
    let err = '';
    const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
    const { signal } = new AbortController();
    const environment = { io, signal, clock: systemClock, open: openCluster };
    const code = await command.run([...args, '--kubeconfig', kubeconfig], environment);
    if (out === '') throw new Error(err);
    return { out, code };
  }

  /** All findings, and the exit code. */
  async ask(kubeconfig: string, ...args: string[]): Promise<{ findings: Finding[]; code: number }> {
    const { out, code } = await this.command(doctorCommand, kubeconfig, [...args, '--output', 'json']);
    return { findings: (JSON.parse(out) as { findings: Finding[] }).findings, code };
  }

  /** Waits until the doctor says so. */
  async finds(kubeconfig: string, wanted: Wanted): Promise<Finding> {
    let last: Finding[] = [];
    const what = `the doctor finds ${wanted.check} ${wanted.says?.source ?? ''}`;
    const look = async (): Promise<Finding | undefined> => {
      ({ findings: last } = await this.ask(kubeconfig));
      return last.find((finding) => matches(finding, wanted));
    };
    return awaited(what, look, { deadlineMs: 90_000, rest: REST }).catch((cause: unknown) => {
      const said = last.filter(({ level, check }) => level !== 'ok' || check === wanted.check);
      throw new Error(`${what}: ${JSON.stringify(said, undefined, 1)}`, { cause });
    });
  }

  /** Waits until nothing of that check is a problem, a warning or unknown any more. */
  async isContent(kubeconfig: string, { check, about }: Wanted): Promise<void> {
    let last: Finding[] = [];
    const what = `the doctor finds nothing wrong with ${check}`;
    const look = async (): Promise<boolean> => {
      const { findings } = await this.ask(kubeconfig);
      last = findings.filter(
        (finding) => finding.check === check && (about === undefined || about.test(finding.tried)),
      );
      return last.length > 0 && last.every(({ level }) => level === 'ok');
    };
    await awaited(what, look, { deadlineMs: 90_000, rest: REST }).catch((cause: unknown) => {
      throw new Error(`${what}: ${JSON.stringify(last, undefined, 1)}`, { cause });
    });
  }

  /** Runs the command of a remedy as it is printed; `fill` is what a person puts in for a word in capitals. */
  async follow(
    kubeconfig: string,
    { run: command, remedy }: Finding,
    fill: Record<string, string> = {},
  ): Promise<string> {
    if (command === undefined) throw new Error(`nothing to run: ${remedy ?? 'no remedy'}`);
    const filled = Object.entries(fill).reduce(
      (text, [word, value]) => text.replaceAll(word, value),
      command,
    );
    const path = `${this.#path}:${process.env['PATH'] ?? ''}`;
    return run(['env', `PATH=${path}`, `KUBECONFIG=${kubeconfig}`, 'bash', '-ec', filled]);
  }
}

const matches = ({ check, level, cameBack, tried }: Finding, wanted: Wanted): boolean =>
  check === wanted.check &&
  level === (wanted.level ?? 'problem') &&
  (wanted.says?.test(cameBack) ?? true) &&
  (wanted.about?.test(tried) ?? true);
