import type { Pod, PodSpec } from '../../api/wire.ts';
import { MAX_NAMESERVERS } from '../../lib/resolv-conf.ts';
import type { HomeDnsPlace } from '../home-dns.ts';
import { carriedNamespaceOf } from './returned.ts';

/** What an API server takes, beside MAX_NAMESERVERS (core/v1 ValidatePodSpec, validatePodDNSConfig). */
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
/** Nothing tells it; nearly all clusters have it. */
const USUAL_DOMAIN = 'cluster.local';
/** As the kubelet sets it for pods that ask cluster DNS. */
const NDOTS = { name: 'ndots', value: '5' };

/** On the network of a node, `ClusterFirst` is `Default`; and no such pod reaches ClusterIPs of home. */
export function asksClusterDns({ spec }: Pod): boolean {
  if (spec === undefined || spec.hostNetwork === true) return false;
  const { dnsPolicy = 'ClusterFirst' } = spec;
  return dnsPolicy === 'ClusterFirst' || dnsPolicy === 'ClusterFirstWithHostNet';
}

/**
 * The DNS that the pod would ask at home, as the kubelet there would merge it (pkg/kubelet/network/dns): ours first, then what the
 * pod itself names, whose options win.
 */
export function forgeDns(home: Pod, dns: HomeDnsPlace | undefined): Pick<PodSpec, 'dnsPolicy' | 'dnsConfig'> {
  if (!asksClusterDns(home)) return {};
  const carried = carriedNamespaceOf(home);
  if (carried !== undefined) return searching(`${carried}.svc.${USUAL_DOMAIN}`, home);
  if (dns === undefined) return {};
  const { nameservers = [], searches = [], options = [] } = home.spec?.dnsConfig ?? {};
  const { domain } = dns;
  const own = [`${home.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return {
    dnsPolicy: 'None',
    dnsConfig: {
      nameservers: unique([...dns.nameservers, ...nameservers]).slice(0, MAX_NAMESERVERS),
      searches: bounded(unique([...own, ...searches])),
      options: options.some(({ name }) => name === NDOTS.name) ? options : [NDOTS, ...options],
    },
  };
}

/** It runs in another namespace than its user's, where the Services that it asks for are. */
function searching(first: string, { spec }: Pod): Pick<PodSpec, 'dnsConfig'> {
  const { searches = [], ...rest } = spec?.dnsConfig ?? {};
  return { dnsConfig: { ...rest, searches: bounded(unique([first, ...searches])) } };
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** As many as fit, from the first one on. */
function bounded(searches: readonly string[]): string[] {
  const first = searches.slice(0, MAX_SEARCHES);
  while (first.join(' ').length > MAX_SEARCH_CHARACTERS) first.pop();
  return first;
}
