import type { Cluster } from '../../lab/cluster.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';

/** An administrator whose requests nobody takes for those of a program that is measured: of another name, and of the system's. */
export async function ownClient(cluster: Cluster): Promise<HttpClient> {
  const subject = { commonName: 'system:bench', organizations: ['system:masters'] };
  return createClient(await parseKubeconfig(await cluster.kubeconfigFor(subject)));
}
