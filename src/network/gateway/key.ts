import { ANNOTATION_ROTATE } from '../../api/names.ts';
import {
  GATEWAY_CONFIG_MAP,
  type GatewayFacts,
  gatewayFactsData,
  readGatewayFacts,
  WIREGUARD_SECRET,
} from '../../api/own-network.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import type { ConfigMap, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import type { Logger } from '../../lib/log.ts';
import { generateKey, type KeyPair, publicKeyOf } from '../host/wireguard/wireguard.ts';

/** Entry of the Secret: the key in base64, as `wg genkey` prints it. */
const PRIVATE_KEY = 'privateKey';

export type KeyStep =
  | { do: 'create' | 'replace'; handled: string | undefined }
  | { do: 'publish'; create: boolean; facts: GatewayFacts }
  | { do: 'use'; key: KeyPair };

/**
 * The next step from what is stored: a key is made where there is none or a new one is asked for, then its public half is told, and only
 * then it is used. The Secret bears the text of the wish that it was made for, so that a program that is killed between two of these
 * steps makes no second key.
 */
export function keyStep(
  secret: Secret | undefined,
  published: ConfigMap | undefined,
  told: Omit<GatewayFacts, 'publicKey'>,
): KeyStep {
  const wish = published?.metadata.annotations?.[ANNOTATION_ROTATE];
  if (secret === undefined) return { do: 'create', handled: wish };
  const handled = secret.metadata.annotations?.[ANNOTATION_ROTATE];
  const key = keyOf(secret);
  if (key === undefined || (wish !== undefined && wish !== handled))
    return { do: 'replace', handled: wish ?? handled };
  const facts = { publicKey: key.publicKey, ...told };
  if (!deepEqual(readGatewayFacts(published?.data), facts)) {
    return { do: 'publish', create: published === undefined, facts };
  }
  return { do: 'use', key };
}

/** The key in the Secret. Undefined where somebody has put something else there. */
function keyOf(secret: Secret): KeyPair | undefined {
  try {
    const privateKey = Buffer.from(secret.data?.[PRIVATE_KEY] ?? '', 'base64')
      .toString('latin1')
      .trim();
    return { privateKey, publicKey: publicKeyOf(privateKey) };
  } catch {
    return undefined;
  }
}

const copyOf = (list: readonly string[] | undefined): string[] | undefined => list && [...list];

export interface KeyKeeperOptions {
  client: KubeClient;
  log: Logger;
  namespace: string;
  secret: () => Secret | undefined;
  published: () => ConfigMap | undefined;
  /** Where peers dial us. Undefined: not known yet. */
  endpoints: () => readonly string[] | undefined;
  /** Name of the node that we are active on. */
  node?: string;
  /** Networks beside ours. Undefined: not known yet. */
  localRoutes: () => readonly string[] | undefined;
  /** Addresses of DNS servers. */
  nameServers?: () => readonly string[];
  /** Nodes that do not answer. Undefined: not measured yet. */
  silentNodes?: () => readonly string[] | undefined;
  newKey?: () => KeyPair;
}

/** The gateway's key pair: makes and keeps the private key, and tells peers the public one. */
export class TunnelKey {
  readonly #options: KeyKeeperOptions;
  #key: KeyPair | undefined;

  constructor(options: KeyKeeperOptions) {
    this.#options = options;
  }

  /** The key that WireGuard uses. A new key is used only when peers can learn of it. */
  get key(): KeyPair | undefined {
    return this.#key;
  }

  /** Makes one step. What is written comes back by the caches. Resolves to whether `key` has changed. */
  async step(signal: AbortSignal): Promise<boolean> {
    const { secret, published, endpoints, localRoutes, nameServers, silentNodes, node } = this.#options;
    const where = endpoints();
    if (where === undefined) return false;
    const stored = secret();
    const before = published();
    const told = readGatewayFacts(before?.data);
    const routes = localRoutes() ?? told?.localRoutes;
    const step = keyStep(stored, before, {
      endpoints: [...where],
      localRoutes: [...(routes ?? [])],
      ...present({
        node,
        nameServers: copyOf(nameServers?.()),
        silentNodes: copyOf(silentNodes?.() ?? told?.silentNodes),
      }),
    });
    if (step.do === 'use') {
      const changed = step.key.privateKey !== this.#key?.privateKey;
      this.#key = step.key;
      return changed;
    }
    if (step.do === 'publish') {
      // Without the routes, a peer could get a view that the routes forbid.
      if (routes !== undefined) await this.#publish(step, signal);
    } else await this.#store(stored, step.handled, signal);
    return false;
  }

  /** Writes by the version that was read: of two that make a key at the same time, one gets a Conflict or AlreadyExists. */
  async #store(stored: Secret | undefined, handled: string | undefined, signal: AbortSignal): Promise<void> {
    const { client, log, namespace, newKey = generateKey } = this.#options;
    const data = { [PRIVATE_KEY]: Buffer.from(newKey().privateKey).toString('base64') };
    const annotations = {
      ...stored?.metadata.annotations,
      ...(handled !== undefined && { [ANNOTATION_ROTATE]: handled }),
    };
    if (stored === undefined) {
      const metadata = { name: WIREGUARD_SECRET, namespace, annotations };
      await client.create(secrets, { metadata, type: 'Opaque', data }, { signal });
    } else {
      const metadata = { ...stored.metadata, annotations };
      await client.replace(secrets, { ...stored, metadata, data }, { signal });
    }
    log.info('new WireGuard key', { secret: WIREGUARD_SECRET });
  }

  async #publish({ create, facts }: KeyStep & { do: 'publish' }, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    const data = gatewayFactsData(facts);
    const ref = { name: GATEWAY_CONFIG_MAP, namespace };
    if (create) await client.create(configMaps, { metadata: ref, data }, { signal });
    else await client.patch(configMaps, ref, { type: 'merge', body: { data } }, { signal });
  }
}
