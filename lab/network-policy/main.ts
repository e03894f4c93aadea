/**
 * The enforcer of one node: `main.ts SERVER PKI-DIRECTORY NODE`, in the node's network namespace. A watch says when to read
 * everything again, so a new policy or pod takes effect half a second later.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { ClusterPki } from '../cluster-pki.ts';
import { KubeApi } from '../kube-api.ts';
import { run } from '../run.ts';
import { compile } from './compile.ts';
import type { Namespace, NetworkPolicy, Pod, World } from './model.ts';

/** Changes of this time are read at once. */
const COLLECT_MS = 500;
const KINDS = ['/api/v1/pods', '/api/v1/namespaces', '/apis/networking.k8s.io/v1/networkpolicies'] as const;

const USAGE = `usage: node lab/network-policy/main.ts SERVER PKI-DIRECTORY NODE

Enforces the NetworkPolicies of a cluster for the pods of one node, with nftables, in the network namespace that it is started in.
A lab starts it on each real node (npm run lab -- up); npm run lab -- status says whether it runs.

  SERVER         https://ADDRESS:PORT of the API server
  PKI-DIRECTORY  keys of the lab's cluster
  NODE           name of the Node`;

const given = process.argv.slice(2);
const [server = '', directory = '', node = ''] = given;
if (given.includes('--help') || given.includes('-h')) {
  console.log(USAGE);
  process.exit(0);
}
if (given.length !== 3 || given.some((argument) => argument.startsWith('-'))) {
  console.error(USAGE);
  process.exit(2);
}
const pki = await ClusterPki.load(directory);
const api = new KubeApi({ server, caCert: pki.authority.cert, client: pki.admin });
let inForce = '';
let changed = Promise.withResolvers<void>();
for (const path of KINDS) void follow(path);
for (;;) {
  changed = Promise.withResolvers<void>();
  try {
    const wanted = compile(await look(), node);
    if (wanted !== inForce) {
      await run(['nft', '-f', '-'], { stdin: wanted });
      inForce = wanted;
      console.log(`${new Date().toISOString()} rules replaced`);
    }
    await changed.promise;
  } catch (error) {
    // Without the API server the rules stay as they are.
    console.error(`${new Date().toISOString()} ${Error.isError(error) ? error.message : String(error)}`);
  }
  await sleep(COLLECT_MS);
}

/** The end of a watch counts as a change, because nothing is known of what came after it. */
async function follow(path: string): Promise<never> {
  for (;;) {
    await api.watch(path, () => changed.resolve()).catch(() => undefined);
    changed.resolve();
    await sleep(COLLECT_MS);
  }
}

async function look(): Promise<World> {
  const [pods, namespaces, policies] = await Promise.all([
    list<Pod>(KINDS[0]),
    list<Namespace>(KINDS[1]),
    list<NetworkPolicy>(KINDS[2]),
  ]);
  return { pods, namespaces, policies };
}

/** From the API server's cache, which costs etcd nothing. */
async function list<T>(path: string): Promise<readonly T[]> {
  return (await api.get<{ readonly items: readonly T[] }>(`${path}?resourceVersion=0`))?.items ?? [];
}
