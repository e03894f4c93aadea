/**
 * The enforcer of one node: `main.ts SERVER PKI-DIRECTORY NODE`, in the node's network namespace. It reads everything
 * twice a second, so a new policy or pod takes effect at most half a second later.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { ClusterPki } from '../cluster-pki.ts';
import { KubeApi } from '../kube-api.ts';
import { run } from '../run.ts';
import { compile } from './compile.ts';
import type { Namespace, NetworkPolicy, Pod, World } from './model.ts';

const PERIOD_MS = 500;

const [server = '', directory = '', node = ''] = process.argv.slice(2);
const pki = await ClusterPki.load(directory);
const api = new KubeApi({ server, caCert: pki.authority.cert, client: pki.admin });
let inForce = '';
for (;;) {
  try {
    const wanted = compile(await look(), node);
    if (wanted !== inForce) {
      await run(['nft', '-f', '-'], { stdin: wanted });
      inForce = wanted;
      console.log(`${new Date().toISOString()} rules replaced`);
    }
  } catch (error) {
    // Without the API server the rules stay as they are.
    console.error(`${new Date().toISOString()} ${Error.isError(error) ? error.message : String(error)}`);
  }
  await sleep(PERIOD_MS);
}

async function look(): Promise<World> {
  const [pods, namespaces, policies] = await Promise.all([
    list<Pod>('/api/v1/pods'),
    list<Namespace>('/api/v1/namespaces'),
    list<NetworkPolicy>('/apis/networking.k8s.io/v1/networkpolicies'),
  ]);
  return { pods, namespaces, policies };
}

/** From the API server's cache, which costs etcd nothing. */
async function list<T>(path: string): Promise<readonly T[]> {
  return (await api.get<{ readonly items: readonly T[] }>(`${path}?resourceVersion=0`))?.items ?? [];
}
