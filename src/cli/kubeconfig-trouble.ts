/** What is wrong between a person and the API server that their kubeconfig names, in words that say what to do. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

import type { KubeConfig } from '@kubernetes/client-node';

import { timestamp } from '../api/conditions.ts';
import { processEnvironment } from '../config.ts';
import { credentialEnd } from '../kube/credential-end.ts';
import type { Credentials } from '../kube/credentials.ts';
import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';
import { unended } from '../lib/unended.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What RBAC says; admission refuses in other words. */
const LACKS_RIGHT = /cannot \w+ resource /u;

/** Contexts in a message. */
const MOST_NAMED = 12;

/** Where kubectl looks for a kubeconfig: $KUBECONFIG, else in the home folder. */
export const defaultFiles = (env: Environment = processEnvironment()): string[] => {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  return named.length > 0 ? named : [join(env['HOME'] ?? homedir(), '.kube', 'config')];
};

/** Throws Invalid where no file is there. In a pod, kubectl and we use its account instead. */
export function checkThereIsOne(
  kubeconfig: string | undefined,
  env: Environment = processEnvironment(),
  isInPod = (): boolean => existsSync('/var/run/secrets/kubernetes.io/serviceaccount/token'),
): void {
  if (kubeconfig !== undefined) {
    if (existsSync(kubeconfig)) return;
    throw new TributaryError('Invalid', `there is no kubeconfig ${kubeconfig} (--kubeconfig)`);
  }
  const files = defaultFiles(env);
  if (files.some((file) => existsSync(file)) || isInPod()) return;
  const from = (env['KUBECONFIG'] ?? '') === '' ? ', since $KUBECONFIG is not set' : ', named by $KUBECONFIG';
  throw new TributaryError(
    'Invalid',
    `there is no kubeconfig, so no cluster is known. Looked for: ${files.join(', ')}${from}. Set KUBECONFIG=FILE, or add --kubeconfig FILE`,
  );
}

/** Throws Invalid where the context that is wanted, or the current one, is not there or names no cluster. */
export function checkContext(config: KubeConfig, file: string): void {
  if (config.getCurrentCluster() !== null) return;
  const name = config.getCurrentContext();
  const names = config.getContexts().map((context) => context.name);
  const known = names.length === 0 ? 'no contexts at all' : names.slice(0, MOST_NAMED).join(', ');
  const more = names.length > MOST_NAMED ? ', ...' : '';
  if (config.getContextObject(name) !== null) {
    throw new TributaryError('Invalid', `context "${name}" of ${file} names a cluster that is not in it`);
  }
  const problem = name ? `has no context "${name}"` : 'has no current context; choose one with --context';
  throw new TributaryError('Invalid', `${file} ${problem}; it has: ${known}${more}`);
}

/** Whom a command spoke to, and as whom. */
export interface Spoken {
  context: string;
  user: string;
  credentials: Pick<Credentials, 'server' | 'clientCert' | 'token'>;
}

/** The same error, said for people; others are returned as they are. */
export async function explainedFor(spoken: Spoken, error: unknown, now: number): Promise<unknown> {
  const { context, user, credentials } = spoken;
  const where = `the API server ${credentials.server.origin} of context "${context}"`;
  const cause = errorMessage(error);
  if (hasCode(error, 'Unauthorized')) {
    const end = (await credentialEnd(credentials)) ?? Infinity;
    const why =
      end <= now
        ? `its certificate or token ended at ${timestamp(end)}`
        : 'its certificate or token is not, or no longer, one of that cluster';
    const message = `${where} does not accept the user "${user}": ${why}. Get a new kubeconfig for it (${cause})`;
    return new TributaryError('Unauthorized', message, { cause: error });
  }
  if (hasCode(error, 'Forbidden') && LACKS_RIGHT.test(cause)) {
    const message = `you lack a right in the cluster of context "${context}": ${unended(cause)}. Ask its administrator for it, or take the kubeconfig of somebody who has it`;
    return new TributaryError('Forbidden', message, { cause: error });
  }
  if (!hasCode(error, 'Unreachable')) return error;
  const message = /CERT_|certificate/u.test(cause)
    ? `${where} shows a certificate that cannot be trusted: is it another cluster by now, or is its certificate out of date? (${cause})`
    : `${where} does not answer. Is that cluster running, and its address reached from here? Another one: --context (${cause})`;
  return new TributaryError('Unreachable', message, { cause: error });
}
