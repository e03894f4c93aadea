import { type Attribute, encodeAttributes, text, u32 } from './attributes.ts';
import { linkHeader, NEW_LINK } from './messages.ts';
import type { Rtnetlink } from './rtnetlink.ts';

/** IFLA_* of linux/if_link.h; IPV4_DEVCONF_* of linux/ip.h. */
const IFLA = { name: 3, families: 26 } as const;
const AF_INET = 2;
const INET_CONF = 1;
const SETTINGS: Readonly<Record<string, number>> = { send_redirects: 6, rp_filter: 8 };

/**
 * Sets `net/ipv4/conf/<link>/<setting>` as rtnetlink does it, which takes CAP_NET_ADMIN only: in a container /proc/sys is
 * read-only. False: not such a setting. Throws KernelError.
 */
export async function setDevconf(kernel: Rtnetlink, path: string, value: string): Promise<boolean> {
  const [, link = '', name = ''] = /^net\/ipv4\/conf\/([^/]+)\/(\w+)$/.exec(path) ?? [];
  const setting = SETTINGS[name];
  if (setting === undefined) return false;
  const settings: Attribute[] = [[INET_CONF, [[setting, u32(Number(value))]]]];
  const attributes = encodeAttributes([
    [IFLA.name, text(link)],
    [IFLA.families, [[AF_INET, settings]]],
  ]);
  await kernel.write(NEW_LINK, 0, Buffer.concat([linkHeader({}), attributes]));
  return true;
}
