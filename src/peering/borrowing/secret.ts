import { timestamp } from '../../api/conditions.ts';
import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import {
  ANNOTATION_ACCESS,
  ANNOTATION_EXPIRES,
  ANNOTATION_ISSUED,
  ANNOTATION_RENEWED,
  LABEL_PROVIDER,
} from '../../api/names.ts';
import type { Draft, Secret } from '../../api/wire.ts';
import { hostAndPort } from '../../lib/endpoint.ts';
import { proxyFor, type ProxySettings } from '../../lib/proxy.ts';
import { forgeKubeconfig, type Kubeconfig } from '../tenant-kubeconfig.ts';

const KEY = 'kubeconfig';

/** A token of the provider, and when it is valid; milliseconds since the epoch. */
export interface HeldCredential {
  token: string;
  issuedMs: number;
  expiresMs: number;
  /** The text by which a person asked for it; see ANNOTATION_RENEW. */
  renewal?: string;
}

/** An address under which agents reach the provider's API server. */
export interface Access {
  how: 'Direct' | 'Link';
  /** https URL. */
  server: string;
  /** PEM. */
  ca?: string;
  /** The name in its certificate, where it is not the URL's host. */
  serverName?: string;
}

export interface StoredAccess {
  access: Access;
  credential: HeldCredential;
}

/**
 * The Secret that the agent reads. The same content has always the same form, so that it can be compared. The agent reads no
 * environment for it: the listener of a link is in this cluster, and no proxy leads there.
 */
export function forgeSecret(
  provider: string,
  systemNamespace: string,
  { access, credential }: StoredAccess,
  proxies?: ProxySettings,
): Draft<Secret> {
  const { how, server, ca, serverName } = access;
  const proxy = how === 'Direct' ? proxyFor(proxies, hostAndPort(new URL(server))) : undefined;
  const kubeconfig = forgeKubeconfig({
    peer: provider,
    server,
    ...(ca !== undefined && { certificateAuthorityData: Buffer.from(ca).toString('base64') }),
    ...(serverName !== undefined && { tlsServerName: serverName }),
    ...(proxy && { proxyUrl: proxy.url }),
    token: credential.token,
  });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretName(provider),
      namespace: systemNamespace,
      labels: { [LABEL_PROVIDER]: provider, [LABEL_APP_NAME]: APP_NAME },
      annotations: {
        [ANNOTATION_ACCESS]: how,
        [ANNOTATION_ISSUED]: timestamp(credential.issuedMs),
        [ANNOTATION_EXPIRES]: timestamp(credential.expiresMs),
        ...(credential.renewal !== undefined && { [ANNOTATION_RENEWED]: credential.renewal }),
      },
    },
    type: 'Opaque',
    data: { [KEY]: Buffer.from(JSON.stringify(kubeconfig)).toString('base64') },
  };
}

/** What is in it; undefined where somebody has damaged it: then a new token is asked for. */
export function readSecret({ metadata, data }: Secret): StoredAccess | undefined {
  const { annotations = {} } = metadata;
  const life = lifeOf(annotations);
  const how = annotations[ANNOTATION_ACCESS] === 'Link' ? 'Link' : 'Direct';
  try {
    const text = Buffer.from(data?.[KEY] ?? '', 'base64').toString('utf8');
    const { clusters, users } = JSON.parse(text) as Kubeconfig;
    const [cluster, token] = [clusters[0]?.cluster, users[0]?.user.token];
    if (cluster?.['server'] === undefined || token === undefined || life === undefined) return undefined;
    return { access: accessOf(how, cluster), credential: { token, ...life } };
  } catch {
    return undefined;
  }
}

function lifeOf(annotations: Record<string, string>): Omit<HeldCredential, 'token'> | undefined {
  const issuedMs = Date.parse(annotations[ANNOTATION_ISSUED] ?? '');
  const expiresMs = Date.parse(annotations[ANNOTATION_EXPIRES] ?? '');
  const renewal = annotations[ANNOTATION_RENEWED];
  return issuedMs < expiresMs
    ? { issuedMs, expiresMs, ...(renewal !== undefined && { renewal }) }
    : undefined;
}

function accessOf(how: Access['how'], cluster: Record<string, string>): Access {
  const { server = '', 'certificate-authority-data': ca, 'tls-server-name': serverName } = cluster;
  return {
    how,
    server,
    ...(ca !== undefined && { ca: Buffer.from(ca, 'base64').toString('utf8') }),
    ...(serverName !== undefined && { serverName }),
  };
}

export const secretName = (clusterID: string): string => `tributary-kubeconfig-${clusterID}`;
