/** `tributary renew`: a new credential from a cluster whose pods we run, before the old one ends. */
import { advertisements } from '../../api/advertisement.ts';
import { ANNOTATION_RENEW } from '../../api/names.ts';
import { EXIT } from '../manifests-output.ts';
import { patchNamed } from './approve.ts';
import { positionals, runOnCluster, type CommandEnvironment } from './environment.ts';

export const RENEW_USAGE = `tributary renew NAME|CLUSTER_ID [--kubeconfig FILE] [--context NAME]`;

/** Does not wait: `status.credentialExpires` of the Advertisement moves when it has come. */
export async function renewCommand(
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<number> {
  return runOnCluster(
    args,
    {
      usage: RENEW_USAGE,
      parse: (line) => positionals(line, ['NAME'])[0] ?? '',
      run: async (name, session) => {
        const now = new Date(session.clock.now()).toISOString();
        const body = { metadata: { annotations: { [ANNOTATION_RENEW]: now } } };
        const found = await patchNamed(advertisements, body, { name, session });
        session.io.out(`a new credential of ${found} is asked for\n`);
        return EXIT.ok;
      },
    },
    environment,
  );
}
