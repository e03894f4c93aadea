import { NETWORK_CONFIG_MAP, readOwnNetwork } from '../../api/own-network.ts';
import type { Pod } from '../../api/wire.ts';
import { parseAddress, PrefixSet, prefixesOf } from '../../lib/prefix.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Whether peers are told of the addresses that pods have. */
export function podAddressFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('addresses');
  const map = itemsOf(lists.configMaps).find(({ metadata }) => metadata.name === NETWORK_CONFIG_MAP);
  const { pods: ranges = [], nodes = [] } = readOwnNetwork(map?.data) ?? {};
  if (ranges.length === 0 || itemsOf(lists.tunnels).length === 0) return [];
  const names = new Set(nodes.map(({ name }) => name));
  const running = itemsOf(lists.pods).filter(
    ({ spec, status }) =>
      spec?.hostNetwork !== true && status?.phase === 'Running' && names.has(spec?.nodeName ?? ''),
  );
  const told = new PrefixSet(prefixesOf(ranges));
  const untold = running.flatMap((pod) => {
    const addresses = addressesOf(pod);
    // Of a pod with two addresses one is enough: some clusters announce only one family.
    if (addresses.length === 0 || addresses.some((address) => isIn(told, address))) return [];
    return [`${pod.metadata.namespace}/${pod.metadata.name} (${addresses[0]})`];
  });
  const tried = 'addresses of the pods of this cluster, against the ranges that peers are told';
  if (untold.length > 0) {
    findings.problem(
      THIS_CLUSTER,
      {
        tried,
        cameBack: `${untold.length} of ${running.length} pods lie out of ${rangesOf(ranges)}: peers cannot reach them. The first: ${untold[0]}`,
      },
      {
        remedy:
          'name the ranges in which the CNI gives addresses, all of them: tributary upgrade --pod-cidrs LIST, or --pod-cidr LIST of the role cluster',
      },
    );
  } else if (running.length > 0) findings.ok(THIS_CLUSTER, { tried, cameBack: 'they lie in these' });
  return findings.all();
}

/** Each node may have a range of its own. */
const MOST_RANGES = 4;
const rangesOf = (ranges: readonly string[]): string =>
  ranges.length > MOST_RANGES
    ? `${ranges.slice(0, MOST_RANGES).join(', ')} and ${ranges.length - MOST_RANGES} more`
    : ranges.join(', ');

const addressesOf = ({ status }: Pod): string[] =>
  (status?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));

function isIn(ranges: PrefixSet, text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && ranges.contains(address);
}
