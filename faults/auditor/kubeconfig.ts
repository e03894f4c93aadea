/** How to reach an API server, from a kubeconfig. */
import { readFileSync } from 'node:fs';

import { parse } from 'yaml';

export interface Access {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  readonly isInsecure: boolean;
}

interface Kubeconfig {
  'current-context'?: string;
  contexts?: { name: string; context: { cluster: string; user: string } }[];
  clusters?: { name: string; cluster: Record<string, unknown> }[];
  users?: { name: string; user: Record<string, unknown> }[];
}

/** @throws {Error} if the file cannot be read or names no server */
export function accessOf(path: string): Access {
  const config = parse(readFileSync(path, 'utf8')) as Kubeconfig;
  const context = config.contexts?.find(({ name }) => name === config['current-context'])?.context;
  const cluster = config.clusters?.find(({ name }) => name === context?.cluster)?.cluster;
  const user = config.users?.find(({ name }) => name === context?.user)?.user ?? {};
  const server = cluster?.['server'];
  if (cluster === undefined || typeof server !== 'string')
    throw new Error(`kubeconfig ${path}: its current context names no cluster with a server`);
  const token = user['token'] ?? contentOf(user, 'tokenFile');
  const parts = {
    ca: contentOf(cluster, 'certificate-authority'),
    cert: contentOf(user, 'client-certificate'),
    key: contentOf(user, 'client-key'),
    token: typeof token === 'string' ? token.trim() : undefined,
  };
  const given = Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined));
  return { server, isInsecure: cluster['insecure-skip-tls-verify'] === true, ...given };
}

/** `NAME-data` in base64, or the content of the file that `NAME` names. */
function contentOf(fields: Record<string, unknown>, name: string): string | undefined {
  const [data, file] = [fields[`${name}-data`], fields[name]];
  if (typeof data === 'string') return Buffer.from(data, 'base64').toString();
  return typeof file === 'string' ? readFileSync(file, 'utf8') : undefined;
}
