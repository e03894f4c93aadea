import { ANNOTATION_WHEN_LOST, HOME_LEASE, LABEL_HOME_UID, type WhenLost } from '../../../src/api/names.ts';
import { leases, pods, secrets } from '../../../src/api/resources.ts';
import type { Pod, Secret } from '../../../src/api/wire.ts';
import { tenantCommand } from '../../../src/cli/tenant.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { Identity } from '../../../src/peering/identity/identity.ts';
import { eventually } from '../../support/eventually.ts';
import { type RightsCluster, printed } from '../../support/labs/rights-cluster.ts';

export interface HomeWorld {
  lab: RightsCluster;
  admin: KubeClient;
  /** Run after the test. */
  stopping: (() => Promise<unknown>)[];
}

/** A peer with one tenant namespace that people have made, whose home comes and goes as the test says. */
export class AbsentHome {
  readonly peer: string = Identity.generate().clusterID;
  readonly namespace: string;
  readonly #world: HomeWorld;
  #renewing = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(name: string, world: HomeWorld) {
    this.namespace = `${name}-shop`;
    this.#world = world;
  }

  async up(): Promise<this> {
    await this.#world.lab.apply(
      await printed(tenantCommand, ['--peer', this.peer, '--namespace', this.namespace]),
    );
    return this;
  }

  /** Renews until `leave`. */
  come(leaseDurationSeconds = 10): void {
    this.#renewing = true;
    this.#world.stopping.push(async () => this.leave());
    const renew = async (): Promise<void> => {
      while (this.#renewing) {
        const renewTime = new Date().toISOString().replace('Z', '000Z');
        const body = { spec: { holderIdentity: 'home', leaseDurationSeconds, renewTime } };
        const ref = { namespace: this.namespace, name: HOME_LEASE };
        await this.#world.admin.patch(leases, ref, { type: 'merge', body }).catch(ignoring('NotFound'));
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
    };
    this.#loop = renew();
  }

  async leave(): Promise<void> {
    this.#renewing = false;
    await this.#loop;
  }

  async pod(name: string, whenLost: WhenLost, restartPolicy = 'Always'): Promise<Pod> {
    const { namespace } = this;
    const made = await this.#world.admin.create(pods, {
      metadata: {
        namespace,
        name,
        labels: { [LABEL_HOME_UID]: `home-${name}`, app: name },
        annotations: { [ANNOTATION_WHEN_LOST]: whenLost },
      },
      spec: { restartPolicy, containers: [{ name: 'app', image: 'app:1' }] },
    });
    const target = { apiVersion: 'v1', kind: 'Node', name: 'real' };
    const { status, body } = await this.#world.lab.cluster.api.call(
      'POST',
      `/api/v1/namespaces/${namespace}/pods/${name}/binding`,
      { apiVersion: 'v1', kind: 'Binding', metadata: { name, uid: made.metadata.uid }, target },
    );
    if (status !== 201) throw new Error(body);
    await this.say(name, { phase: 'Running', containerStatuses: [app({ restartCount: 2 })] });
    return made;
  }

  async say(name: string, status: object): Promise<void> {
    const ref = { namespace: this.namespace, name };
    await this.#world.admin.patch(pods, ref, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async get(name: string): Promise<Pod | undefined> {
    return this.#world.admin.get(pods, { namespace: this.namespace, name }).catch(ignoring('NotFound'));
  }

  async remove(name: string): Promise<void> {
    await this.#world.admin.delete(pods, { namespace: this.namespace, name }, { gracePeriodSeconds: 0 });
  }

  async journals(): Promise<Secret[]> {
    const { items } = await this.#world.admin.list(secrets, { namespace: 'tributary-peers' });
    return items.filter(({ metadata }) => metadata.labels?.['tributary.dev/peer'] === this.peer);
  }

  async hasLease(): Promise<boolean> {
    const ref = { namespace: this.namespace, name: HOME_LEASE };
    return (await this.#world.admin.get(leases, ref).catch(ignoring('NotFound'))) !== undefined;
  }

  async isJournalled(): Promise<void> {
    await eventually('a journal', async () => (await this.journals()).length > 0);
  }
}

const app = (more: object): object => ({
  name: 'app',
  image: 'app:1',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...more,
});
export const DONE: object = {
  phase: 'Succeeded',
  containerStatuses: [
    app({
      state: {
        terminated: { exitCode: 0, reason: 'Completed', message: '42', finishedAt: '2026-01-01T00:00:00Z' },
      },
    }),
  ],
};
