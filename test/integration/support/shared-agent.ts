import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

import { openTokenIssuer, tenantKubeconfigCommand } from '../../../src/cli/tenant-kubeconfig.ts';
import { tenantCommand } from '../../../src/cli/tenant.ts';
import { SharedLauncher } from '../../../src/deploy/shared-launcher.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { AGENTS, type LauncherLab, SYSTEM, wanted } from '../../support/labs/launcher-lab.ts';
import { printed } from '../../support/labs/rights-cluster.ts';
import { RoleProcess } from '../../support/labs/role-process.ts';

const KINDS = '/apis/tributary.dev/v1alpha1/virtualnodes';

/** One process of role `peers` under the rights that a launcher gives it, with a provider that is well and one that is not. */
export class SharedAgent {
  readonly process: RoleProcess;
  readonly #lab: LauncherLab;
  readonly #hostile: Server;
  readonly #home: HttpClient;

  private constructor(lab: LauncherLab, process: RoleProcess, hostile: Server, home: HttpClient) {
    this.#lab = lab;
    this.process = process;
    this.#hostile = hostile;
    this.#home = home;
  }

  /** `well` is a tenant of the lab's own cluster, with home namespace `shop`; the API server of `ill` never ends an answer. */
  static async start(lab: LauncherLab, ids: { well: string; ill: string }): Promise<SharedAgent> {
    const { cluster, admin } = lab;
    const peer = ['--peer', 'oslo', '--namespace', 'oslo-shop'];
    await cluster.apply(await printed(tenantCommand, peer));
    const where = [...peer, '--kubeconfig', cluster.cluster.kubeconfig];
    const kubeconfig = await printed(tenantKubeconfigCommand(openTokenIssuer), where);
    const hostile = await endlessServer(lab);
    const address = `https://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
    const home = cluster.clientWith(
      (await cluster.tokenOf({ namespace: SYSTEM, name: 'tributary-cluster' })).token,
    );
    const options = { home, image: 'tributary:1', clock: systemClock, log: silentLogger, goneMs: 60_000 };
    const launcher = new SharedLauncher(options);
    const { signal } = new AbortController();
    for (const [id, node, file] of [
      [ids.well, 'oslo', kubeconfig],
      [ids.ill, 'ghost', kubeconfig.replaceAll(cluster.cluster.server, address)],
    ] as const) {
      const { kubeconfigSecret, ...rest } = wanted(id, [node], ['shop']);
      const secret = { metadata: { name: kubeconfigSecret.name }, stringData: { kubeconfig: file } };
      await admin('POST', `/api/v1/namespaces/${SYSTEM}/secrets`, secret);
      await admin('POST', KINDS, virtualNode(id, node));
      await launcher.ensure({ ...rest, kubeconfigSecret }, signal);
    }
    const account = { namespace: AGENTS, name: 'tributary-peers' };
    const own = { 'node-address': '127.0.0.1', 'kubelet-port': '0' };
    return new SharedAgent(
      lab,
      await RoleProcess.start('peers', cluster, { account, options: own }),
      hostile,
      home,
    );
  }

  async stop(): Promise<void> {
    await this.process.stop();
    await this.#home.close();
    this.#hostile.closeAllConnections();
    this.#hostile.close();
  }

  /** As a launcher does when the choice changes. */
  async label(node: string, value: 'peers' | null): Promise<void> {
    const body = { metadata: { labels: { 'tributary.dev/agent': value } } };
    const { api } = this.#lab.cluster.cluster;
    await api.call('PATCH', `${KINDS}/vn-${node}`, body, 'application/merge-patch+json');
  }
}

/** It has the certificate of the lab's API server. */
async function endlessServer(lab: LauncherLab): Promise<Server> {
  const { cert, key } = await lab.cluster.cluster.pki.authority.issue({
    commonName: 'endless',
    ips: ['127.0.0.1'],
  });
  const server = createServer({ cert, key }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const drip = setInterval(() => response.write(' '.repeat(65_536)), 20);
    response.once('close', () => clearInterval(drip));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  return server;
}

const virtualNode = (id: string, node: string): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'VirtualNode',
  metadata: { name: `vn-${node}`, labels: { 'tributary.dev/provider': id } },
  spec: {
    nodeName: node,
    kubeconfigSecretRef: wanted(id, [], []).kubeconfigSecret,
    resources: { cpu: '4', memory: '4Gi', pods: '10' },
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: `${node}-shop` }],
  },
});
