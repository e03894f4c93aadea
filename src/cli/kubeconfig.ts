import type { RequestOptions } from 'node:https';
import { processEnvironment } from '../config.ts';
import type { Credentials } from '../kube/credentials.ts';
import { hostAndPort } from '../lib/endpoint.ts';
import { parseProxy, type Proxy, proxyFor, proxySettings } from '../lib/proxy.ts';
import type { KubeConfig } from './kube-config.ts';
import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';
import {
  checkContext,
  checkThereIsOne,
  defaultFiles,
  explainedFor,
  type Spoken,
} from './kubeconfig-trouble.ts';

/** Which cluster a command speaks to; what is not given is as for kubectl. */
export interface Where {
  kubeconfig: string | undefined;
  context: string | undefined;
}

/**
 * The cluster that kubectl would speak to, authenticated as kubectl would be: $KUBECONFIG with several files,
 * exec plug-ins and auth providers included. All that is client-node's, which is loaded here only: an agent, which
 * lives for months, does without its 85 MB.
 */
export const kubectlCredentials = async (where: Where): Promise<Credentials> =>
  (await readKubeconfig(where)).credentials;

async function readKubeconfig({ kubeconfig, context }: Where): Promise<Spoken> {
  checkThereIsOne(kubeconfig);
  const config = await loaded(kubeconfig);
  if (context !== undefined) config.setCurrentContext(context);
  checkContext(config, kubeconfig ?? defaultFiles().join(', '));
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser()?.name ?? '';
  const options: RequestOptions = { headers: {} };
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new TributaryError('Unauthorized', `user "${user}" of the kubeconfig: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const server = new URL(cluster?.server ?? '');
  const proxy = proxyTo(server, cluster?.proxyUrl);
  const credentials = { ...credentialsOf(server, options), ...(proxy && { proxy }) };
  return { context: config.getCurrentContext(), user, credentials };
}

/** As kubectl finds it. */
const proxyTo = (server: URL, named = ''): Proxy | undefined =>
  named === ''
    ? proxyFor(proxySettings(processEnvironment()), hostAndPort(server))
    : parseProxy(named, 'proxy-url of the kubeconfig');

/** An error of a request to that cluster, said for people. What cannot be explained is returned as it is. */
export async function explained(error: unknown, where: Where, now: number): Promise<unknown> {
  if (!hasCode(error, 'Unreachable', 'Unauthorized', 'Forbidden')) return error;
  try {
    return await explainedFor(await readKubeconfig(where), error, now);
  } catch {
    return error;
  }
}

/** Names of all contexts, in their order. */
export async function contextsOf({ kubeconfig }: Pick<Where, 'kubeconfig'>): Promise<string[]> {
  return (await loaded(kubeconfig)).getContexts().map(({ name }) => name);
}

async function loaded(kubeconfig: string | undefined): Promise<KubeConfig> {
  const { KubeConfig } = await import('./kube-config.ts');
  const config = new KubeConfig();
  try {
    // Of several files the first one's context counts, as for kubectl.
    if (kubeconfig === undefined) config.loadFromDefault(undefined, true);
    else config.loadFromFile(kubeconfig);
  } catch (error) {
    const where = kubeconfig ?? 'the default kubeconfig';
    throw new TributaryError('Invalid', `cannot read ${where}: ${errorMessage(error)}`, { cause: error });
  }
  return config;
}

function credentialsOf(server: URL, options: RequestOptions): Credentials {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const token = bearerToken(options.headers as Record<string, unknown> | undefined);
  return {
    server,
    ...(ca === undefined ? {} : { ca: pem(ca) }),
    ...(cert === undefined || key === undefined ? {} : { clientCert: { cert: pem(cert), key: pem(key) } }),
    ...(servername === undefined ? {} : { tlsServerName: servername }),
    ...(rejectUnauthorized === false ? { insecureSkipTlsVerify: true } : {}),
    ...(token === undefined ? {} : { token: async () => Promise.resolve(token) }),
  };
}

const pem = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(pem).join('\n')
    : Buffer.isBuffer(value)
      ? value.toString('utf8')
      : String(value);

function bearerToken(headers: Record<string, unknown> | undefined): string | undefined {
  const value = headers?.['Authorization'] ?? headers?.['authorization'];
  return typeof value === 'string' ? /^Bearer (.+)$/u.exec(value)?.[1] : undefined;
}
