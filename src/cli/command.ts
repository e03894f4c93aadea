/** Makes a command from its description. */
import type { Command, CommandSpec } from './spec.ts';

export type * from './spec.ts';

/** A command that may stand alone; `parent` is how people call what it belongs to. */
export function defineCommand(spec: CommandSpec, parent = 'tributary'): Command {
  return {
    spec,
    run: async (args, environment) => {
      const { runParsed } = await import('./parser.ts');
      return runParsed(spec, { parent, args, environment });
    },
  };
}
