import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type AgentConfig, processEnvironment } from '../config.ts';
import type { Credentials } from '../kube/credentials.ts';
import { inClusterCredentials } from '../kube/in-cluster.ts';
import { parseKubeconfig } from '../kube/kubeconfig.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, TributaryError } from '../lib/errors.ts';

/** The home cluster's API server: a kubeconfig where one is named, else the pod's own account. */
export async function homeCredentials(
  config: Pick<AgentConfig, 'kubeconfig' | 'context'>,
  clock: Clock,
): Promise<Credentials> {
  const { kubeconfig, context } = config;
  if (kubeconfig === undefined) {
    return inClusterCredentials({
      readFile: async (path) => readFile(path, 'utf8'),
      env: processEnvironment(),
      clock,
    });
  }
  return parseKubeconfig(await readKubeconfig(kubeconfig), {
    allowFiles: true,
    baseDir: dirname(kubeconfig),
    clock,
    ...(context === undefined ? {} : { context }),
  });
}

async function readKubeconfig(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = isMissing ? `there is no kubeconfig ${file}` : errorMessage(error);
    throw new TributaryError('Invalid', `${why} (--kubeconfig, or $KUBECONFIG)`);
  }
}
