import { X509Certificate } from 'node:crypto';
import { readFile as readFileFromDisk } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { type Fields, isFields } from '../lib/fields.ts';
import { parseProxy } from '../lib/proxy.ts';
import { type Credentials, rereadToken } from './credentials.ts';

export interface KubeconfigOptions {
  /** The context to read, instead of `current-context`. */
  context?: string;
  /**
   * Whether the text may name files of this machine. Only for a kubeconfig that the user named on the command
   * line: one that comes from a Secret may have been written by a peer.
   */
  allowFiles?: boolean;
  /** The folder that relative file names refer to. */
  baseDir?: string;
  readFile?: (path: string) => Promise<string>;
  clock?: Clock;
}

/** A generous kubeconfig with ten clusters has 100 kB. */
const MAX_BYTES = 256 * 1024;

/**
 * Reads one context of a kubeconfig, YAML or JSON. The text is untrusted: every mistake is an Invalid error of
 * one line that names the entry at fault.
 */
export async function parseKubeconfig(text: string, options: KubeconfigOptions = {}): Promise<Credentials> {
  const config = await parseDocument(text);
  const contextName = options.context ?? textOf(config, 'current-context', 'kubeconfig');
  if (contextName === undefined) throw invalid('no context given and no current-context set');
  const context = entry(config, 'context', contextName);
  if (context === undefined) throw invalid(`context "${contextName}" is not in the file`);
  const where = `context "${contextName}"`;
  const clusterName = textOf(context, 'cluster', where);
  if (clusterName === undefined) throw invalid(`${where} names no cluster`);
  const cluster = entry(config, 'cluster', clusterName);
  if (cluster === undefined)
    throw invalid(`${where} names cluster "${clusterName}", which is not in the file`);
  const userName = textOf(context, 'user', where);
  const user = userName === undefined ? {} : entry(config, 'user', userName);
  if (user === undefined) throw invalid(`${where} names user "${userName}", which is not in the file`);
  const namespace = textOf(context, 'namespace', where);
  return {
    ...(await clusterPart(cluster, `cluster "${clusterName}"`, options)),
    ...(await userPart(user, `user "${userName ?? ''}"`, options)),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

async function parseDocument(text: string): Promise<Fields> {
  if (Buffer.byteLength(text) > MAX_BYTES) throw invalid(`longer than ${MAX_BYTES} bytes`);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // Loaded only when needed: our own kubeconfigs are JSON, and the parser costs a few MB.
    const { default: yaml } = await import('yaml');
    try {
      // No aliases (they can blow up a small text) and no key comparison (it is quadratic).
      document = yaml.parse(text, { maxAliasCount: 0, uniqueKeys: false, logLevel: 'error' });
    } catch (error) {
      throw invalid(`not YAML: ${errorMessage(error).split('\n')[0]?.trim() ?? ''}`);
    }
  }
  if (!isFields(document)) throw invalid('not a mapping');
  return document;
}

async function clusterPart(
  cluster: Fields,
  where: string,
  options: KubeconfigOptions,
): Promise<Pick<Credentials, 'server' | 'ca' | 'tlsServerName' | 'insecureSkipTlsVerify' | 'proxy'>> {
  const ca = await dataOrFile(cluster, 'certificate-authority', where, options);
  const skip = cluster['insecure-skip-tls-verify'] === true;
  if (skip && ca !== undefined) {
    throw invalid(`${where}: certificate-authority and insecure-skip-tls-verify exclude each other`);
  }
  if (ca !== undefined) checkCertificate(ca, `${where}: certificate-authority`);
  const tlsServerName = textOf(cluster, 'tls-server-name', where);
  const proxy = textOf(cluster, 'proxy-url', where);
  return {
    server: serverUrl(textOf(cluster, 'server', where), where),
    ...(ca === undefined ? {} : { ca }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(skip ? { insecureSkipTlsVerify: true } : {}),
    ...(proxy === undefined ? {} : { proxy: parseProxy(proxy, `kubeconfig: ${where}: proxy-url`) }),
  };
}

function serverUrl(text: string | undefined, where: string): URL {
  if (text === undefined) throw invalid(`${where} has no server`);
  if (!URL.canParse(text)) throw invalid(`${where}: server "${text.slice(0, 200)}" is not a URL`);
  const url = new URL(text);
  if (url.protocol !== 'https:') throw invalid(`${where}: server must be an https URL`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw invalid(`${where}: server may hold a host, a port and a path only`);
  }
  return url;
}

/** Ways to authenticate that we do not support. If we ignored one, we would act as somebody else. */
const UNSUPPORTED = [
  'exec',
  'auth-provider',
  'username',
  'password',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
];

async function userPart(
  user: Fields,
  where: string,
  options: KubeconfigOptions,
): Promise<Pick<Credentials, 'clientCert' | 'token'>> {
  for (const key of UNSUPPORTED) {
    if (user[key] !== undefined) {
      throw invalid(`${where} uses ${key}, which an agent cannot: give it a token or a client certificate`);
    }
  }
  const cert = await dataOrFile(user, 'client-certificate', where, options);
  const key = await dataOrFile(user, 'client-key', where, options);
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid(`${where} needs client-certificate and client-key, or neither`);
  }
  const token = tokenPart(user, where, options);
  if (cert === undefined || key === undefined) return token;
  checkCertificate(cert, `${where}: client-certificate`);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw invalid(`${where}: client-key does not fit: ${errorMessage(error)}`);
  }
  return { clientCert: { cert, key }, ...token };
}

function tokenPart(user: Fields, where: string, options: KubeconfigOptions): Pick<Credentials, 'token'> {
  const file = textOf(user, 'tokenFile', where);
  if (file !== undefined) {
    const path = filePath(file, `${where}: tokenFile`, options);
    const read = options.readFile ?? readText;
    return { token: rereadToken(() => read(path), options.clock) };
  }
  const token = textOf(user, 'token', where);
  if (token === undefined) return {};
  if (!/^[\x21-\x7e]+$/.test(token)) throw invalid(`${where}: token holds characters that no token has`);
  return { token: () => Promise.resolve(token) };
}

async function dataOrFile(
  fields: Fields,
  key: string,
  where: string,
  options: KubeconfigOptions,
): Promise<string | undefined> {
  const data = textOf(fields, `${key}-data`, where);
  if (data !== undefined) {
    if (!/^[A-Za-z0-9+/=\s]*$/.test(data)) throw invalid(`${where}: ${key}-data is not base64`);
    return Buffer.from(data, 'base64').toString('utf8');
  }
  const file = textOf(fields, key, where);
  if (file === undefined) return undefined;
  const path = filePath(file, `${where}: ${key}`, options);
  try {
    return await (options.readFile ?? readText)(path);
  } catch (error) {
    throw invalid(`${where}: ${key}: ${errorMessage(error)}`);
  }
}

function filePath(file: string, where: string, options: KubeconfigOptions): string {
  if (options.allowFiles !== true) {
    throw invalid(`${where} names a file; this kubeconfig must hold everything inline`);
  }
  return resolve(options.baseDir ?? '.', file);
}

const readText = (path: string): Promise<string> => readFileFromDisk(path, 'utf8');

function checkCertificate(pem: string, where: string): void {
  try {
    void new X509Certificate(pem);
  } catch (error) {
    throw invalid(`${where} is not a PEM certificate: ${errorMessage(error)}`);
  }
}

/** An entry of the lists `contexts`, `clusters` and `users`. */
function entry(config: Fields, kind: 'context' | 'cluster' | 'user', name: string): Fields | undefined {
  const list = config[`${kind}s`];
  if (!Array.isArray(list)) return undefined;
  const found = list.find((item): item is Fields => isFields(item) && item['name'] === name);
  if (found === undefined) return undefined;
  const value = found[kind] ?? {};
  if (!isFields(value)) throw invalid(`${kind} "${name}" is not a mapping`);
  return value;
}

function textOf(fields: Fields, key: string, where: string): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalid(`${where}: ${key} must be a string`);
  return value;
}

const invalid = (message: string): TributaryError => new TributaryError('Invalid', `kubeconfig: ${message}`);
