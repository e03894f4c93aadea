/** Makes a command from its description. */
import { runParsed } from './parser.ts';
import type { Command, CommandSpec } from './spec.ts';

export type * from './spec.ts';

/** A command that may stand alone; `parent` is how people call what it belongs to. */
export function defineCommand(spec: CommandSpec, parent = 'tributary'): Command {
  return {
    spec,
    run: async (args, environment) => runParsed(spec, { parent, args, environment }),
  };
}
