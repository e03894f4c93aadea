import { readFile } from 'node:fs/promises';

import type { AgentConfig } from '../config.ts';
import { parseResolvConf } from '../lib/resolv-conf.ts';
import { type OwnDns, ownDnsOf } from '../provider/home-dns.ts';

const RESOLV_CONF = '/etc/resolv.conf';

/** What people have named, and otherwise what the kubelet has given this pod. A file that is not there says nothing. */
export async function ownDns({
  clusterDns: nameservers,
  clusterDomain: domain,
}: Pick<AgentConfig, 'clusterDns' | 'clusterDomain'>): Promise<OwnDns> {
  const text = await readFile(RESOLV_CONF, 'utf8').catch(() => '');
  return ownDnsOf(parseResolvConf(text), { nameservers, domain });
}
