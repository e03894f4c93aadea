import { TributaryError } from '../lib/errors.ts';
import type { Clock } from '../lib/clock.ts';
import { type Credentials, rereadToken } from './credentials.ts';

/** The folder in which every pod finds its service account. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface InClusterOptions {
  readFile: (path: string) => Promise<string>;
  env: Readonly<Record<string, string | undefined>>;
  clock?: Clock;
}

/** The credentials of our own pod. The token is read again every minute, since the kubelet rotates it. */
export async function inClusterCredentials({ readFile, env, clock }: InClusterOptions): Promise<Credentials> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || host === '' || port === undefined || port === '') {
    const why = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod';
    throw new TributaryError(
      'Invalid',
      `no API server is known: ${why}. Outside of pods, name one: --kubeconfig FILE`,
    );
  }
  const token = rereadToken(() => readFile(`${ACCOUNT}/token`), clock);
  await token();
  const namespace = await readFile(`${ACCOUNT}/namespace`).catch(() => '');
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    ca: await readFile(`${ACCOUNT}/ca.crt`),
    token,
    ...(namespace.trim() === '' ? {} : { namespace: namespace.trim() }),
  };
}
