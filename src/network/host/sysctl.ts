import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { TributaryError } from '../../lib/errors.ts';
import { type Attribute, encodeAttributes, linkHeader, NEW_LINK, text, u32 } from './messages.ts';
import type { Rtnetlink } from './rtnetlink.ts';

const DIRECTORY = '/proc/sys';

/** IFLA_* of linux/if_link.h; IPV4_DEVCONF_* of linux/ip.h. */
const IFLA = { name: 3, families: 26 } as const;
const AF_INET = 2;
const INET_CONF = 1;
const SETTINGS: Readonly<Record<string, number>> = { send_redirects: 6, rp_filter: 8 };

/** Resolves to whether the setting had to be written. `path` is below /proc/sys, with `/` as separator. Throws TributaryError. */
export async function setSysctl(kernel: Rtnetlink, path: string, value: string): Promise<boolean> {
  if (path.split('/').includes('..'))
    throw new TributaryError('Invalid', `sysctl ${path}: not below /proc/sys`);
  const file = join(DIRECTORY, path);
  try {
    if (isSame(await readFile(file, 'utf8'), value)) return false;
    await writeFile(file, value);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EROFS' && (await setDevconf(kernel, path, value))) return true;
    throw new TributaryError('Unavailable', `sysctl ${path} = ${value}: ${reason(code)}`);
  }
}

function reason(code: string | undefined): string {
  if (code === 'EROFS') {
    return '/proc/sys is read-only in this container: set it on the host';
  }
  return code === 'ENOENT'
    ? 'the kernel has no such setting'
    : `the kernel refused it: ${code ?? 'unknown error'}`;
}

/** The kernel separates numbers with tabs and ends with a line break. */
const isSame = (a: string, b: string): boolean => normalized(a) === normalized(b);
const normalized = (value: string): string => value.trim().split(/\s+/).join(' ');

/**
 * Sets `net/ipv4/conf/<link>/<setting>` as rtnetlink does it, which takes CAP_NET_ADMIN only: in a container /proc/sys is
 * read-only. Resolves to false for any other setting. Throws KernelError.
 */
async function setDevconf(kernel: Rtnetlink, path: string, value: string): Promise<boolean> {
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
