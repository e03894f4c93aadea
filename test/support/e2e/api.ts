/** An API server of the lab as tests read and write it: plain JSON, as system:masters. */
import type { Cluster } from '../../../lab/cluster.ts';
import { ANNOUNCEMENT_CONFIG_MAP, readAnnouncementData } from '../../../src/api/own-announcement.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { until } from './until.ts';

export type PatchType = 'merge' | 'strategic' | 'json';

const PATCH_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
};

/** The fields that tests look at, of any kind. */
export interface Thing {
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    creationTimestamp?: string;
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  data?: Record<string, string>;
}

export class ClusterApi {
  readonly cluster: Cluster;

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  async call<T = Thing>(method: string, path: string, body?: unknown, type?: string): Promise<T> {
    const { status, body: text } = await this.cluster.api.call(method, path, body, type);
    if (status >= 300) throw new Error(`${this.cluster.name}: ${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  async get<T = Thing>(path: string): Promise<T | undefined> {
    return this.cluster.api.get<T>(path);
  }

  async list<T = Thing>(path: string): Promise<T[]> {
    return (await this.call<{ items: T[] }>('GET', path)).items;
  }

  async create<T = Thing>(path: string, object: object): Promise<T> {
    return this.call<T>('POST', path, object);
  }

  async patch<T = Thing>(path: string, body: unknown, type: PatchType = 'merge'): Promise<T> {
    return this.call<T>('PATCH', path, body, PATCH_TYPES[type]);
  }

  /** Deletes an object; it is no error if the object does not exist. */
  async remove(path: string, options: { gracePeriodSeconds?: number } = {}): Promise<void> {
    const { status, body } = await this.cluster.api.call('DELETE', path, options);
    if (status >= 300 && status !== 404) throw new Error(`DELETE ${path}: ${status} ${body}`);
  }

  /** Text of a path such as /metrics. */
  async text(path: string): Promise<string> {
    return (await this.cluster.api.call('GET', path)).body;
  }

  async pod(namespace: string, name: string): Promise<Pod | undefined> {
    return this.get<Pod>(podPath(namespace, name));
  }

  async pods(namespace: string, selector?: string): Promise<Pod[]> {
    const query = selector === undefined ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
    return this.list<Pod>(`${podPath(namespace)}${query}`);
  }
}

export const podPath = (namespace: string, name?: string): string =>
  `/api/v1/namespaces/${namespace}/pods${name === undefined ? '' : `/${name}`}`;

export const deploymentPath = (namespace: string, name?: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/deployments${name === undefined ? '' : `/${name}`}`;

export const corePath = (namespace: string, plural: string, name?: string): string =>
  `/api/v1/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;

/** Its ClusterID, as soon as its role `cluster` has published it. */
export const clusterID = async (api: ClusterApi): Promise<string> =>
  until(`the ClusterID of ${api.cluster.name}`, async () => {
    const published = await api.get(corePath('tributary-system', 'configmaps', ANNOUNCEMENT_CONFIG_MAP));
    return readAnnouncementData(published?.data)?.clusterID;
  });
