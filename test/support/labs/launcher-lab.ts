/** A real API server with the manifests of the `cluster` role, and a launcher under its account. */
import { PodLauncher } from '../../../src/deploy/launcher.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { WantedAgent } from '../../../src/peering/ports.ts';
import { eventually } from '../eventually.ts';
import { RightsCluster, printed, type Caller } from './rights-cluster.ts';

export const SYSTEM = 'tributary-system';
export const AGENTS = 'tributary-agents';
export const RBAC = '/apis/rbac.authorization.k8s.io/v1';

export const account = (clusterID: string): { namespace: string; name: string } => ({
  namespace: AGENTS,
  name: `tributary-peer-${clusterID}`,
});

export const wanted = (clusterID: string, names: string[], namespaces: string[]): WantedAgent => ({
  clusterID,
  virtualNodes: names.map((name) => ({ name: `vn-${name}`, nodeName: name })),
  namespaces,
  kubeconfigSecret: { namespace: SYSTEM, name: `tributary-kubeconfig-${clusterID}` },
});

export class LauncherLab {
  readonly cluster: RightsCluster;
  readonly launcher: PodLauncher;
  /** As the `cluster` role. */
  readonly role: Caller;
  /** As the administrator. */
  readonly admin: Caller;
  readonly #home: KubeClient;

  private constructor(cluster: RightsCluster, token: string) {
    const { api, server, pki } = cluster.cluster;
    this.cluster = cluster;
    this.role = cluster.with(token);
    this.admin = async (method, path, body) => api.call(method, path, body);
    this.#home = createClient({
      server: new URL(server),
      ca: pki.authority.cert,
      token: async () => Promise.resolve(token),
    });
    this.launcher = new PodLauncher({
      home: this.#home,
      image: 'tributary:1',
      clock: systemClock,
      log: silentLogger,
      goneMs: 60_000,
    });
  }

  /** With the home namespaces `shop` and `web`, a Secret in each. */
  static async up(): Promise<LauncherLab> {
    const cluster = await RightsCluster.up();
    await cluster.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
    const { token } = await cluster.tokenOf({ namespace: SYSTEM, name: 'tributary-cluster' });
    const lab = new LauncherLab(cluster, token);
    for (const name of ['shop', 'web']) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      await lab.admin('POST', '/api/v1/namespaces', namespace);
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'password' } };
      await lab.admin('POST', `/api/v1/namespaces/${name}/secrets`, secret);
    }
    await eventually('the fences are in force', async () => lab.#isFenced());
    return lab;
  }

  async down(): Promise<void> {
    await this.#home.close();
    await this.cluster.down();
  }

  /** What is there; undefined where nothing is. */
  async shown<T>(path: string): Promise<T | undefined> {
    const { status, body } = await this.admin('GET', path);
    return status === 200 ? (JSON.parse(body) as T) : undefined;
  }

  /** Policies take effect a moment after they are applied. */
  async #isFenced(): Promise<boolean> {
    const namespace = await this.role('DELETE', '/api/v1/namespaces/shop?dryRun=All');
    const role = { metadata: { name: 'other' }, rules: [] };
    const launching = await this.role('POST', `${RBAC}/namespaces/${SYSTEM}/roles?dryRun=All`, role);
    return namespace.status === 422 && launching.status === 422;
  }
}
