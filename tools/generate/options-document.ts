/** docs/reference/options.md: the options of the roles, from src/config.ts. */
import { AGENT_OPTIONS } from '../../src/config.ts';

/** As in src/cli/run.ts: `ROLE, ROLE: text`, or `text` where it is an option of all roles. */
const TEXT = /^(?:([a-z]+(?:, [a-z]+)*): )?(.*)$/su;

function row([name, whole]: [string, string]): string {
  const [, roles, text = whole] = TEXT.exec(whole) ?? [];
  const of = roles === undefined || roles.split(', ').includes('all') ? 'all' : roles;
  return `| \`--${name}\` | ${of === 'all' && roles === undefined ? 'every role' : (roles ?? '')} | ${text.replaceAll('|', '\\|')} |`;
}

export const optionsDocument = (): string => `<!-- Made by tools/generate.ts from src/config.ts. -->

# Options of the roles

What \`tributary run\` can be told. Role \`all\` takes the options of every role. Most of them can be given to \`tributary
manifests\`, which writes them into the pods. A wrong value ends the program at once, with one line that names all mistakes.

| option | roles | meaning |
| --- | --- | --- |
${Object.entries(AGENT_OPTIONS).map(row).join('\n')}

The environment variables \`KUBECONFIG\`, \`TRIBUTARY_LOG_LEVEL\` and \`TRIBUTARY_CLUSTER_NAME\` count where \`--kubeconfig\`,
\`--log-level\` and \`--cluster-name\` are not given. Pods that \`tributary manifests\` makes have \`POD_NAME\`, \`POD_NAMESPACE\` and
\`POD_IP\`; those of \`gateway\` and \`node\` also have \`NODE_NAME\`.

Roles \`cluster\` and \`peer\` reach other clusters through the HTTP proxy of \`HTTPS_PROXY\`, but for what \`NO_PROXY\` names:
[Behind an HTTP proxy](../install.md#behind-an-http-proxy).

The level of logs can be changed while the roles run: [monitoring](../monitoring.md#logs).
`;
