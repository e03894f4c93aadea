/**
 * Everything that a lab makes, recorded before it is made: one JSON value per line, only appended. If the program is
 * killed at any point, everything can be removed with the help of this file.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { DaemonRecord, DaemonSpec } from './daemon.ts';
import type { ProcessId } from './process.ts';
import type { LabSpec } from './spec.ts';

export type JournalEntry =
  | { readonly kind: 'lab'; readonly spec: LabSpec }
  /** Removed with all its content, after every mount below it. */
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'netns'; readonly name: string }
  /** An interface in the root network namespace. */
  | { readonly kind: 'link'; readonly name: string }
  /** Removed, with its processes, from every hierarchy. */
  | { readonly kind: 'cgroup'; readonly name: string }
  | { readonly kind: 'cluster'; readonly name: string; readonly access: ClusterAccess }
  | { readonly kind: 'daemon'; readonly spec: DaemonSpec }
  | { readonly kind: 'started'; readonly name: string; readonly id: ProcessId }
  /** A node or a cluster that is off: none of its programs should run. */
  | { readonly kind: 'power'; readonly name: string; readonly on: boolean }
  /** The last step of `up`. */
  | { readonly kind: 'ready' };

/** How to reach a cluster that is up. */
export interface ClusterAccess {
  readonly server: string;
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string;
  /** Folder of a ClusterPki. */
  readonly pkiDirectory: string;
}

export interface KnownDaemon {
  readonly spec: DaemonSpec;
  /** Its newest process; absent if the lab's program died between the two lines. */
  readonly id?: ProcessId;
}

/** The sum of a journal. */
export interface LabState {
  readonly spec: LabSpec | undefined;
  readonly ready: boolean;
  readonly directories: readonly string[];
  readonly netns: readonly string[];
  readonly links: readonly string[];
  readonly cgroups: readonly string[];
  readonly clusters: ReadonlyMap<string, ClusterAccess>;
  readonly daemons: ReadonlyMap<string, KnownDaemon>;
  /** Nodes and clusters without power, by name. */
  readonly off: ReadonlySet<string>;
  /** Every process ever started, the replaced ones too. */
  readonly processes: readonly ProcessId[];
}

export class Journal implements DaemonRecord {
  readonly runDirectory: string;
  readonly #file: string;

  constructor(runDirectory: string) {
    this.runDirectory = runDirectory;
    this.#file = join(runDirectory, 'journal.jsonl');
  }

  exists(): boolean {
    return existsSync(this.#file);
  }

  append(entry: JournalEntry): void {
    mkdirSync(this.runDirectory, { recursive: true, mode: 0o700 });
    appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
  }

  starting(spec: DaemonSpec): void {
    this.append({ kind: 'daemon', spec });
  }

  started(name: string, id: ProcessId): void {
    this.append({ kind: 'started', name, id });
  }

  read(): LabState {
    return replay(this.exists() ? readFileSync(this.#file, 'utf8') : '');
  }
}

/** Reads a journal's text. An incomplete last line is ignored: what it announces was not made yet. */
export function replay(text: string): LabState {
  let spec: LabSpec | undefined;
  let ready = false;
  const directories = new Set<string>();
  const netns = new Set<string>();
  const links = new Set<string>();
  const cgroups = new Set<string>();
  const clusters = new Map<string, ClusterAccess>();
  const daemons = new Map<string, KnownDaemon>();
  const off = new Set<string>();
  const processes: ProcessId[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    const entry = JSON.parse(line) as JournalEntry;
    switch (entry.kind) {
      case 'lab':
        spec = entry.spec;
        break;
      case 'ready':
        ready = true;
        break;
      case 'directory':
        directories.add(entry.path);
        break;
      case 'netns':
        netns.add(entry.name);
        break;
      case 'link':
        links.add(entry.name);
        break;
      case 'cgroup':
        cgroups.add(entry.name);
        break;
      case 'cluster':
        clusters.set(entry.name, entry.access);
        break;
      case 'daemon':
        daemons.set(entry.spec.name, { spec: entry.spec });
        break;
      case 'power':
        setPower(off, entry);
        break;
      case 'started':
        processes.push(entry.id);
        addProcess(daemons, entry.name, entry.id);
        break;
    }
  }
  return {
    spec,
    ready,
    directories: [...directories],
    netns: [...netns],
    links: [...links],
    cgroups: [...cgroups],
    clusters,
    daemons,
    off,
    processes,
  };
}

function addProcess(daemons: Map<string, KnownDaemon>, name: string, id: ProcessId): void {
  const known = daemons.get(name);
  if (known) daemons.set(name, { ...known, id });
}

function setPower(off: Set<string>, { name, on }: { readonly name: string; readonly on: boolean }): void {
  if (on) off.delete(name);
  else off.add(name);
}
