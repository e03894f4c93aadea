import { Resolver } from 'node:dns/promises';

/** Together about as long as EndpointResolver waits. */
const ANSWER = { timeout: 1000, tries: 2 };

/**
 * Addresses of a name by DNS, IPv4 first. Not by `dns.lookup`: that asks the C library on one of libuv's four threads,
 * which it holds for as long as a name server is silent. Peers choose these names, so a few of them could keep every
 * file from being read. The price: /etc/hosts and search domains do not count.
 *
 * @param servers for tests; default: those of /etc/resolv.conf, read each time, since a host may move.
 */
export async function lookUpByDns(name: string, servers?: readonly string[]): Promise<string[]> {
  const resolver = new Resolver(ANSWER);
  if (servers !== undefined) resolver.setServers(servers);
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
  return [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}
