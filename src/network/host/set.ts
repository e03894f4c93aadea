import { existsSync } from 'node:fs';

import { setAddresses } from './addresses.ts';
import { type HostConfig, type HostReport, TABLES } from './host-config.ts';
import { ourLinks, setLinks } from './links.ts';
import { setNeighbours } from './neighbours.ts';
import { setTable } from './nftables/table.ts';
import { linkIndex } from './routes.ts';
import { setRules } from './rules.ts';
import { setFallbacks, setRoutes } from './set-routes.ts';
import { setSysctl } from './sysctl.ts';
import { setWireGuard } from './wireguard/wireguard.ts';
import { wireguardOf } from './wireguard/choice.ts';
import type { HostContext } from './work.ts';

/** It is there where the kernel has IPv6 (no `ipv6.disable=1`), whether or not a link uses it. */
const IPV6 = '/proc/net/if_inet6';

/**
 * For a kernel without IPv6, which refuses each route of it. None is missed: it sends no packet of IPv6, neither into a tunnel nor in
 * clear. Addresses are left for it to refuse, since whoever chose them counts on them.
 */
export const withoutIPv6 = (config: HostConfig): HostConfig => ({
  ...config,
  routes: config.routes.filter(({ destination }) => !destination.includes(':')),
});

/**
 * Makes the host as wanted, in an order in which nothing leaks wherever it is interrupted: fallback routes before all else, the
 * filter and the translation before the peers of the tunnel, and these before the routes that lead into it. Resolves to the
 * indexes of our links, and to whose WireGuard there is. Throws the signal's reason between two steps.
 */
export async function setHost(
  host: HostContext,
  wanted: HostConfig,
  signal?: AbortSignal,
): Promise<{ indexes: number[] } & Pick<HostReport, 'wireguard' | 'isUnfiltered'>> {
  const { kernel, work } = host;
  const config = existsSync(IPV6) ? wanted : withoutIPv6(wanted);
  const step = async (what: string, run: () => Promise<void>): Promise<boolean> => {
    signal?.throwIfAborted();
    return work.attempt(what, async () => {
      await run();
      return 0;
    });
  };
  await step('fallback routes', async () => setFallbacks(host, config));
  signal?.throwIfAborted();
  const isFiltered = await work.attempt('nftables', async () =>
    setTable(TABLES[config.owner], config.nftables, signal),
  );
  let all: Awaited<ReturnType<typeof setLinks>> = [];
  await step('links', async () => {
    all = await setLinks(host, config);
  });
  const ours = ourLinks(config, all);
  await step('addresses', async () => setAddresses(host, ours));
  await step('neighbours', async () => setNeighbours(host, ours));
  const missing = new Set(config.links.flatMap(({ name }) => (ours.has(name) ? [] : [name])));
  for (const [path, value] of Object.entries(config.sysctls)) {
    signal?.throwIfAborted();
    // A link of somebody else may have that name.
    if (path.split('/').some((part) => missing.has(part))) continue;
    await work.attempt('sysctls', async () => Number(await setSysctl(kernel, path, value)));
  }
  await setTunnel(host, config, { isThere: ours.has(config.wireguard?.link ?? ''), isFiltered });
  await step('routes', async () => setRoutes(host, config, { all: linkIndex(all), missing }));
  await step('rules', async () => setRules({ kernel, work }, config));
  const wireguard = wireguardOf([...ours.values()].find(({ wanted }) => wanted.kind === 'wireguard')?.kind);
  return {
    indexes: [...ours.values()].map(({ index }) => index),
    ...(wireguard && { wireguard }),
    ...(!isFiltered && { isUnfiltered: true }),
  };
}

async function setTunnel(
  { work }: HostContext,
  { wireguard }: HostConfig,
  link: { isThere: boolean; isFiltered: boolean },
): Promise<void> {
  if (wireguard === undefined || !link.isThere) return;
  if (!link.isFiltered) {
    work.refuse(`WireGuard ${wireguard.link}: left as it is, since its packet filter could not be set`);
    return;
  }
  await work.attempt('WireGuard', async () => setWireGuard(wireguard));
}
