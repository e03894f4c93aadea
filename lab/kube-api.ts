/**
 * The few calls the lab itself makes to an API server: JSON over HTTPS with the admin's certificate. The product's
 * client is what the lab exists to test, so the lab does not lean on it.
 */
import { Agent, request } from 'node:https';

import type { KeyPair } from './pki.ts';

export interface KubeApiOptions {
  readonly server: string;
  readonly caCert: string;
  readonly client: KeyPair;
}

export interface KubeResponse {
  readonly status: number;
  readonly body: string;
}

/** Anything with the four fields that make it an object of the API. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** Name in URLs of every kind the lab applies; a lookup at run time would need discovery. */
const PLURALS: Readonly<Record<string, string>> = {
  APIService: 'apiservices',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  ConfigMap: 'configmaps',
  CustomResourceDefinition: 'customresourcedefinitions',
  Deployment: 'deployments',
  ForeignCluster: 'foreignclusters',
  Job: 'jobs',
  Namespace: 'namespaces',
  NamespaceOffloading: 'namespaceoffloadings',
  Node: 'nodes',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  RuntimeClass: 'runtimeclasses',
  Secret: 'secrets',
  Service: 'services',
  ServiceAccount: 'serviceaccounts',
  SharingPolicy: 'sharingpolicies',
  StatefulSet: 'statefulsets',
  StorageClass: 'storageclasses',
};

/** A machine that runs several clusters on two cores stalls for some seconds. */
const REQUEST_TIMEOUT_MS = 30_000;
const WATCH_SECONDS = 60;

export class KubeApi {
  readonly #options: KubeApiOptions;
  readonly #agent: Agent;

  constructor(options: KubeApiOptions) {
    this.#options = options;
    const { caCert: ca, client } = options;
    this.#agent = new Agent({ ca, cert: client.cert, key: client.key, keepAlive: true });
  }

  /** Whether GET /readyz says ok; false for every failure, a refused connection included. */
  async isReady(): Promise<boolean> {
    try {
      return (await this.call('GET', '/readyz')).status === 200;
    } catch {
      return false;
    }
  }

  /** The object at `path`; undefined on 404. */
  async get<T>(path: string): Promise<T | undefined> {
    const response = await this.call('GET', path);
    if (response.status === 404) return undefined;
    return JSON.parse(expectOk('GET', path, response)) as T;
  }

  /** Server-side apply: creates or changes, as often as wanted. */
  async apply(...objects: readonly KubeObject[]): Promise<void> {
    for (const object of objects) {
      const path = `${objectPath(object)}?fieldManager=tributary-lab&force=true`;
      const response = await this.call('PATCH', path, object, 'application/apply-patch+yaml');
      expectOk('PATCH', path, response);
    }
  }

  /**
   * Calls `onChange` for what a watch of that list brings, first for all that is there; resolves when the server ends it, and fails
   * if a server that is gone does not.
   */
  async watch(path: string, onChange: () => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const url = new URL(`${path}?watch=1&timeoutSeconds=${WATCH_SECONDS}`, this.#options.server);
    const signal = AbortSignal.timeout(WATCH_SECONDS * 1000 + REQUEST_TIMEOUT_MS);
    const sent = request(url, { agent: this.#agent, signal }, (answer) => {
      answer.on('data', onChange);
      answer.once('error', reject);
      answer.once('close', resolve);
    });
    sent.once('error', reject);
    sent.end();
    return promise;
  }

  /** One request; resolves with whatever status the server answered. */
  async call(method: string, path: string, body?: unknown, contentType?: string): Promise<KubeResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<KubeResponse>();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(
      new URL(path, this.#options.server),
      {
        method,
        agent: this.#agent,
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        headers:
          content === undefined
            ? {}
            : {
                'content-type': contentType ?? 'application/json',
                // Node frames the body of a DELETE only when told how long it is.
                'content-length': Buffer.byteLength(content),
              },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.once('error', reject);
        answer.once('end', () =>
          resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    sent.once('error', reject);
    sent.end(content);
    return promise;
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }
}

/** Path of an object in the API. */
export function objectPath(object: KubeObject): string {
  const plural = PLURALS[object.kind];
  if (plural === undefined) throw new Error(`the lab does not know the plural of ${object.kind}`);
  const group = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`;
  const { namespace, name } = object.metadata;
  return `${group}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}/${name}`;
}

function expectOk(method: string, path: string, response: KubeResponse): string {
  if (response.status < 300) return response.body;
  throw new Error(`${method} ${path}: ${response.status} ${response.body.slice(0, 500)}`);
}
