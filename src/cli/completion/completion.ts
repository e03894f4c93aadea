/** `tributary completion SHELL`. */
import { type Command, defineCommand } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { SCRIPTS } from './scripts.ts';

type Shell = keyof typeof SCRIPTS;

export const completionCommand: Command = defineCommand({
  name: 'completion',
  summary: 'Print what makes a shell complete commands, options, and names in the cluster.',
  about:
    'For "kubectl tributary", put the file kubectl_complete-tributary of the release beside kubectl-tributary. Names are read ' +
    'with the rights of the kubeconfig, for a second at most.',
  arguments: [{ name: 'SHELL', text: 'bash, zsh or fish', choices: Object.keys(SCRIPTS) }],
  examples: [
    { line: 'source <(tributary completion bash)', does: 'In ~/.bashrc' },
    { line: 'source <(tributary completion zsh)', does: 'In ~/.zshrc, after compinit' },
    { line: 'tributary completion fish | source', does: 'In ~/.config/fish/config.fish' },
  ],
  act: async ({ positionals: [shell] }, { io }) => {
    // The parser has checked the choice.
    io.out(SCRIPTS[shell as Shell]);
    return Promise.resolve(EXIT.ok);
  },
});
