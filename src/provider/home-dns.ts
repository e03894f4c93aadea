import type { ResolvConf } from '../lib/resolv-conf.ts';
import type { Logger } from '../lib/log.ts';
import type { NetworkView } from './network-view.ts';
import { contains, parseAddress, prefixesOf } from '../lib/prefix.ts';
import { HOME_REACH_REASONS, type HomeDnsView, type HomeReachReason } from '../api/tunnel.ts';

/** The DNS of this cluster, as a pod here asks it. */
export interface OwnDns {
  nameservers: readonly string[];
  /** Of the cluster, as in `cluster.local`. */
  domain: string | undefined;
}

export const NO_DNS: OwnDns = { nameservers: [], domain: undefined };

/** Which of them pods over there ask. */
export interface HomeDnsPlace {
  nameservers: readonly string[];
  domain: string;
}

/** None: pods over there ask the DNS of their cluster. Unknown: a pod waits, since its DNS cannot be changed later. */
export type HomeDnsWay =
  | { kind: 'NotChosen' }
  | ({ kind: 'At' } & HomeDnsPlace)
  | { kind: 'None' | 'Unknown'; reason: HomeReachReason; message: string };

/** The kubelet gives each pod that asks cluster DNS the searches NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN. */
export function ownDnsOf(
  { nameservers, searches }: ResolvConf,
  named: { nameservers: readonly string[]; domain: string | undefined },
): OwnDns {
  const domains = searches.flatMap((search) =>
    search.startsWith('svc.') ? [search.slice('svc.'.length)] : [],
  );
  return {
    nameservers: named.nameservers.length > 0 ? named.nameservers : nameservers,
    domain: named.domain ?? domains.find((domain) => searches.includes(domain)),
  };
}

export function homeDnsWay({ homeDns }: { homeDns: HomeDnsView }, own: OwnDns): HomeDnsWay {
  if (homeDns.kind !== 'Open') return homeDns;
  const ranges = prefixesOf(homeDns.ranges);
  const nameservers = own.nameservers.filter((text) => {
    const address = parseAddress(text);
    return address !== undefined && ranges.some((range) => contains(range, address));
  });
  const { domain } = own;
  if (nameservers.length === 0) {
    const known = own.nameservers.length === 0 ? 'none' : `only ${own.nameservers.join(', ')}`;
    return missing(
      `within our ClusterIPs ${homeDns.ranges.join(', ')} this agent knows no DNS (${known}): name the ClusterIP of ` +
        'the Service kube-dns with --cluster-dns of the role cluster',
    );
  }
  if (domain === undefined) {
    return missing(
      'this agent does not know the domain of this cluster: name it with --cluster-domain of the role cluster',
    );
  }
  return { kind: 'At', nameservers, domain };
}

const missing = (message: string): HomeDnsWay => ({
  kind: 'None',
  reason: HOME_REACH_REASONS.noClusterDns,
  message,
});

/** From now on says once why pods over there ask no DNS of home: it does not change while this process runs. */
export function complainOfDns(
  network: Pick<NetworkView, 'onChange'>,
  way: () => HomeDnsWay,
  log: Logger,
): void {
  let said = '';
  network.onChange(() => {
    const now = way();
    if (now.kind !== 'None' || now.reason !== 'NoClusterDNS' || now.message === said) return;
    said = now.message;
    log.warn('pods over there ask the foreign DNS', { why: said });
  });
}
