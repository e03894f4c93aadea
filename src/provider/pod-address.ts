import { BlockList, isIP } from 'node:net';

/** No pod has such an address. A pod that claims one would direct clients of its Service to their own machine. */
const NOT_OF_PODS = new BlockList();
NOT_OF_PODS.addSubnet('0.0.0.0', 8);
NOT_OF_PODS.addSubnet('127.0.0.0', 8);
NOT_OF_PODS.addSubnet('169.254.0.0', 16);
NOT_OF_PODS.addSubnet('224.0.0.0', 3);
NOT_OF_PODS.addSubnet('::', 127, 'ipv6');
NOT_OF_PODS.addSubnet('fe80::', 10, 'ipv6');
NOT_OF_PODS.addSubnet('ff00::', 8, 'ipv6');

/** The same networks of IPv4, by the text of an address: the list makes an object for each look, and there is one for each status of each pod. */
const NOT_OF_PODS_4 = /^(?:0|127|169\.254|22[4-9]|2[3-5]\d)\./u;

/** 4 or 6 for an address that a pod may have, else 0. */
export function podAddressFamily(text: string): 0 | 4 | 6 {
  const family = isIP(text);
  if (family === 4) return NOT_OF_PODS_4.test(text) ? 0 : 4;
  if (family === 0 || text.includes('%')) return 0;
  return NOT_OF_PODS.check(text, 'ipv6') ? 0 : 6;
}
