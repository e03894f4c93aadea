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

/** 4 or 6 for an address that a pod may have, else 0. */
export function podAddressFamily(text: string): 0 | 4 | 6 {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) return 0;
  if (NOT_OF_PODS.check(text, family === 6 ? 'ipv6' : 'ipv4')) return 0;
  return family === 6 ? 6 : 4;
}
