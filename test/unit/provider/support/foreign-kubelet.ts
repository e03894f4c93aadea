import { LABEL_HOME_UID } from '../../../../src/api/names.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { type AnyObject, timestamp } from '../../../support/fake-api/storage.ts';

/** The exit code of a container that ends on SIGTERM. */
export const STOPPED = 143;

/**
 * Scheduler and kubelet of the foreign cluster, in memory: places what is created, runs it, ends what is deleted. It
 * keeps a diary, by which a test knows what has really run and for whom.
 */
export class ForeignKubelet {
  /** Container IDs by the UID of the home pod that they ran for, in order of their start. */
  readonly starts: Map<string, string[]> = new Map();
  /** Pods asked to end stay while this is set. */
  holding = false;
  readonly #server: FakeApi;
  readonly #now: () => number;
  #containers = 0;

  constructor(server: FakeApi, now: () => number) {
    this.#server = server;
    this.#now = now;
    server.storage.subscribe(({ resource, current }) => {
      if (resource !== 'pods' || current === undefined) return;
      const { namespace, name } = current.metadata;
      setImmediate(() => this.#sync(`${namespace}/${name}`));
    });
  }

  /** Ends what was asked to end while it held. */
  release(): void {
    this.holding = false;
    for (const { metadata } of this.#server.storage.list('pods'))
      this.#sync(`${metadata.namespace}/${metadata.name}`);
  }

  /** A container ends, and with it, unless it is restarted, the pod. */
  finish(key: string, phase: 'Succeeded' | 'Failed'): void {
    this.#status(key, (status) => ({ ...status, phase }));
  }

  #sync(key: string): void {
    const pod = this.#server.storage.get('pods', key);
    if (pod === undefined) return;
    if (pod.metadata.deletionTimestamp !== undefined) {
      if (!this.holding) this.#end(key);
    } else if (pod.spec?.['nodeName'] === undefined) {
      this.#server.storage.update('pods', { ...pod, spec: { ...pod.spec, nodeName: 'foreign-1' } });
    } else if (pod.status?.['startTime'] === undefined) {
      this.#run(key, pod);
    }
  }

  /** The terminal state and the removal follow each other at once, as from a kubelet. */
  #end(key: string): void {
    const { status } = this.#server.storage.get('pods', key) ?? {};
    const containers = (status?.['containerStatuses'] ?? []) as object[];
    const state = { terminated: { exitCode: STOPPED, reason: 'Error' } };
    if (containers.length > 0 && status?.['phase'] === 'Running') {
      this.#status(key, (before) => ({
        ...before,
        phase: 'Failed',
        containerStatuses: containers.map((one) => ({ ...one, ready: false, started: false, state })),
      }));
    }
    this.#server.storage.remove('pods', key);
  }

  #run(key: string, pod: AnyObject): void {
    const owner = pod.metadata.labels?.[LABEL_HOME_UID] ?? '';
    const containerID = `containerd://${++this.#containers}`;
    this.starts.set(owner, [...(this.starts.get(owner) ?? []), containerID]);
    const now = timestamp(this.#now());
    const [container] = (pod.spec?.['containers'] ?? []) as { name: string; image: string }[];
    this.#status(key, () => ({
      phase: 'Running',
      startTime: now,
      hostIP: '203.0.113.9',
      podIP: `10.0.0.${this.#containers % 250}`,
      podIPs: [{ ip: `10.0.0.${this.#containers % 250}` }],
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
        type,
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: now,
      })),
      containerStatuses: [
        {
          name: container?.name,
          image: container?.image,
          imageID: 'sha256:1',
          containerID,
          ready: true,
          started: true,
          restartCount: 0,
          state: { running: { startedAt: now } },
          lastState: {},
        },
      ],
    }));
  }

  #status(key: string, change: (status: Record<string, unknown>) => Record<string, unknown>): void {
    const pod = this.#server.storage.get('pods', key);
    if (pod === undefined) throw new Error(`no pod ${key} over there`);
    this.#server.storage.update('pods', { ...pod, status: change(pod.status ?? {}) });
  }
}
