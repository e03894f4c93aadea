import { createPrivateKey, generateKeyPairSync, type webcrypto } from 'node:crypto';
import { ANNOTATION_CLUSTER_ID } from '../../api/names.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import type { ConfigMap, Secret } from '../../api/wire.ts';
import type { ClusterBasics, KubeClient } from '../../kube/client.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { persistently } from '../../lib/persistence.ts';
import type { OwnIdentity, SignaturePurpose } from '../ports.ts';
import { Identity } from './identity.ts';

/** Name of the Secret that holds the key, and of the ConfigMap that records the ClusterID. */
export const IDENTITY_NAME = 'tributary-identity';
const KEY = 'identity.key';
/** In the ConfigMap: the ClusterID, for roles and people that must not read the key. */
const CLUSTER_ID_KEY = 'clusterID';
/** Ours has 119 characters. */
const MAX_PEM_LENGTH = 4096;

interface IdentityStoreOptions {
  client: KubeClient;
  /** The project's own namespace. */
  namespace: string;
  log: Logger;
}

/**
 * The identity of this cluster, made at the first start. The ConfigMap beside the Secret outlives it, so that a lost
 * Secret is an error and not a new cluster with the same workloads. Throws Invalid, with what to do, where things do not
 * fit together; nothing that exists is ever replaced.
 */
export async function loadIdentity(options: IdentityStoreOptions, signal: AbortSignal): Promise<Identity> {
  // The record is read first: it is written last, so whoever sees it must see the Secret, too.
  const recorded = await readClusterID(options, signal);
  const secret = await readSecret(options, signal);
  if (secret === undefined && recorded !== undefined) throw lost(options.namespace, recorded);
  const identity = secret === undefined ? await create(options, signal) : parse(secret);
  if (recorded === undefined) await record(options, identity, signal);
  else if (recorded !== identity.clusterID) throw changed(options.namespace, recorded, identity.clusterID);
  return identity;
}

/** What the ConfigMap says, also for roles that may not read the key; undefined while there is none. */
export async function readClusterID(
  { client, namespace }: Pick<IdentityStoreOptions, 'client' | 'namespace'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found: ConfigMap | undefined = await client
    .get(configMaps, { name: IDENTITY_NAME, namespace }, { signal })
    .catch(ignoring('NotFound'));
  return found?.data?.[CLUSTER_ID_KEY];
}

async function readSecret(
  { client, namespace }: IdentityStoreOptions,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  return client.get(secrets, { name: IDENTITY_NAME, namespace }, { signal }).catch(ignoring('NotFound'));
}

/** Makes a key and stores it. If somebody was faster, the key of the other one counts. */
async function create(options: IdentityStoreOptions, signal: AbortSignal): Promise<Identity> {
  const { client, namespace, log } = options;
  const { privateKey } = generateKeyPairSync('ed25519');
  const identity = new Identity(privateKey);
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const annotations = { [ANNOTATION_CLUSTER_ID]: identity.clusterID };
  try {
    await client.create(
      secrets,
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: IDENTITY_NAME, namespace, annotations },
        type: 'Opaque',
        immutable: true,
        data: { [KEY]: Buffer.from(pem).toString('base64') },
      },
      { signal },
    );
    log.info('identity made', { clusterID: identity.clusterID });
    return identity;
  } catch (error) {
    if (!hasCode(error, 'AlreadyExists')) throw error;
  }
  const winner = await client.get(secrets, { name: IDENTITY_NAME, namespace }, { signal });
  return parse(winner);
}

async function record(
  { client, namespace }: IdentityStoreOptions,
  { clusterID, publicKey }: Identity,
  signal: AbortSignal,
): Promise<void> {
  const data = { [CLUSTER_ID_KEY]: clusterID, publicKey: Buffer.from(publicKey).toString('base64') };
  const metadata = { name: IDENTITY_NAME, namespace };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  await client.create(configMaps, body, { signal }).catch(ignoring('AlreadyExists'));
}

function parse(secret: Secret): Identity {
  const where = `Secret ${secret.metadata.namespace}/${secret.metadata.name}`;
  const identity = new Identity(keyOf(secret, where));
  const annotated = secret.metadata.annotations?.[ANNOTATION_CLUSTER_ID];
  if (annotated === identity.clusterID) return identity;
  throw new TributaryError(
    'Invalid',
    `${where} holds the key of ${identity.clusterID}, but its annotation ${ANNOTATION_CLUSTER_ID} says ` +
      `${annotated ?? 'nothing'}: restore the Secret from a backup, or correct the annotation if the key is right`,
  );
}

function keyOf(secret: Secret, where: string): ReturnType<typeof createPrivateKey> {
  const pem = Buffer.from(secret.data?.[KEY] ?? '', 'base64').toString('utf8');
  try {
    if (pem.length > MAX_PEM_LENGTH) throw new RangeError('too long');
    const key = createPrivateKey({ key: pem, format: 'pem' });
    if (key.asymmetricKeyType !== 'ed25519') throw new RangeError(`not Ed25519`);
    return key;
  } catch {
    // The cause is left out, since it might quote the key.
    throw new TributaryError(
      'Invalid',
      `${where} holds no PKCS#8 Ed25519 key under ${KEY}: restore it from a backup; delete it together with the ` +
        `ConfigMap of the same name only if this cluster shall become another one, unknown to its peers`,
    );
  }
}

const lost = (namespace: string, recorded: string): TributaryError =>
  new TributaryError(
    'Invalid',
    `Secret ${namespace}/${IDENTITY_NAME} with the key of ${recorded} is gone: restore it from a backup; delete ` +
      `the ConfigMap of the same name only if this cluster shall become another one, unknown to its peers`,
  );

const changed = (namespace: string, recorded: string, clusterID: string): TributaryError =>
  new TributaryError(
    'Invalid',
    `ConfigMap ${namespace}/${IDENTITY_NAME} says that this cluster is ${recorded}, but the Secret of the same ` +
      `name holds the key of ${clusterID}: restore the Secret from a backup, or delete the ConfigMap if the key is right`,
  );

/** The identity of this cluster, for parts that are put together before it has been loaded. */
export class ClusterIdentity implements OwnIdentity, Component {
  readonly name = 'identity';
  readonly #options: IdentityStoreOptions & ClusterBasics;
  #loaded: Identity | undefined;

  constructor(options: IdentityStoreOptions & ClusterBasics) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const complaint = 'the identity of this cluster cannot be read';
    const load = async (): Promise<Identity> => loadIdentity(this.#options, signal);
    this.#loaded = await persistently(load, { clock, log, complaint }, signal);
  }

  get clusterID(): string {
    return this.#identity.clusterID;
  }

  get publicKey(): Uint8Array {
    return this.#identity.publicKey;
  }

  sign(purpose: SignaturePurpose, text: string): string {
    return this.#identity.sign(purpose, text);
  }

  certificateKeys(): webcrypto.CryptoKeyPair {
    return this.#identity.certificateKeys();
  }

  get #identity(): Identity {
    if (this.#loaded === undefined) throw new Error('the identity is used before it was loaded');
    return this.#loaded;
  }
}
