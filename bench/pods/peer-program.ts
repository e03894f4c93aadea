import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Cluster } from '../../lab/cluster.ts';
import { freePorts } from '../../lab/free-ports.ts';

export interface PeerArguments {
  readonly args: readonly string[];
  /** Of /readyz and /metrics. */
  readonly opsPort: number;
}

/** Arguments of the role `peer` for a virtual node of that cluster, at an address of its host; its certificate is written into `folder`. */
export async function peerArguments(
  cluster: Cluster,
  { virtualNode, folder, address = '127.0.0.1' }: { virtualNode: string; folder: string; address?: string },
): Promise<PeerArguments> {
  const [kubelet = 0, ops = 0] = await freePorts(2);
  const pair = await cluster.pki.authority.issue({ commonName: virtualNode, ips: [address] });
  mkdirSync(folder, { recursive: true });
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key, { mode: 0o600 });
  const options = {
    kubeconfig: cluster.kubeconfig,
    'virtual-node': virtualNode,
    'node-address': address,
    'kubelet-port': String(kubelet),
    'ops-port': String(ops),
    'tls-cert-file': cert,
    'tls-private-key-file': key,
  };
  const named = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  return { args: ['run', 'peer', ...named], opsPort: ops };
}
