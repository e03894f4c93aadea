/**
 * A command as data: its name, its arguments and options with their texts, and what it does. The parser, the help, completion and
 * the reference in docs are all made from it.
 */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { CommandIo, CommandLine } from './command-line.ts';
import type { Where } from './kubeconfig.ts';

/** What the values of an argument or option name; completion asks the cluster, or the kubeconfig, for these names. */
export type Names =
  | 'advertisements'
  | 'contexts'
  | 'files'
  | 'foreignclusters'
  | 'namespaces'
  | 'peeringrequests'
  | 'policies'
  | 'tokens'
  | 'virtualnodes';

export interface ArgumentSpec {
  /** As in the usage, in capitals. */
  readonly name: string;
  readonly text: string;
  readonly isOptional?: boolean;
  /** Any number of them; the last argument only. */
  readonly isVariadic?: boolean;
  readonly choices?: readonly string[];
  readonly names?: Names;
  /** Offered by completion besides names; other values are possible. */
  readonly words?: readonly string[];
}

export interface OptionSpec {
  /** What the value is, in capitals; absent: a flag, without a value. */
  readonly value?: string;
  readonly text: string;
  /** One letter. */
  readonly short?: string;
  readonly isRequired?: boolean;
  /** What counts where it is not given, for the help only. */
  readonly fallback?: string;
  readonly choices?: readonly string[];
  readonly names?: Names;
  /** Taken, but not shown in the help. */
  readonly isHidden?: boolean;
}

export type Options = Readonly<Record<string, OptionSpec>>;

export interface Example {
  readonly line: string;
  /** What it does, one line. */
  readonly does: string;
}

/** The caller closes it. */
export type OpenCluster = (where: Where) => Promise<KubeClient>;

export interface CommandEnvironment {
  io: CommandIo;
  /** Fires when the person at the terminal interrupts the command. */
  signal: AbortSignal;
  clock: Clock;
  open: OpenCluster;
}

export interface CommandSpec {
  /** One word. */
  readonly name: string;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** Further paragraphs of the help. */
  readonly about?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: Options;
  readonly examples?: readonly Example[];
  /** Exit codes with a meaning of their own, beside 0, 1 and 2. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Commands below this one; then it does nothing by itself. */
  readonly children?: readonly Command[];
  /** Heading under which the help of the program shows it. */
  readonly group?: string;
  /** Not in lists of commands. */
  readonly isHidden?: boolean;
  /** The line has the form that the spec says. Returns the exit code; an Invalid error is a mistake of the caller. */
  readonly act?: (line: CommandLine, environment: CommandEnvironment) => Promise<number>;
}

export interface Command {
  readonly spec: CommandSpec;
  /** `args` without the command's own name. Never rejects. */
  run(args: readonly string[], environment: CommandEnvironment): Promise<number>;
}
