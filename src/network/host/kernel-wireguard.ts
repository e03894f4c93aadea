import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { createLink, deleteLink, dumpLinks } from './links.ts';
import { isKernelError, Rtnetlink } from './rtnetlink.ts';

/** There for a moment only. */
const TRIAL = 'tributary-trial';

/** Whether this kernel has WireGuard: by making a link, since the module may be loaded only then. Needs CAP_NET_ADMIN. */
export async function kernelHasWireGuard(options: { clock: Clock; log: Logger }): Promise<boolean> {
  const kernel = new Rtnetlink(options);
  try {
    await createLink(kernel, 'gateway', { kind: 'wireguard', name: TRIAL, mtu: 1420, addresses: [] });
    return true;
  } catch (error) {
    if (isKernelError(error, 'EEXIST')) return true;
    if (isKernelError(error, 'EOPNOTSUPP')) return false;
    throw error;
  } finally {
    const links = await dumpLinks(kernel).catch(() => []);
    for (const { name, index } of links) {
      if (name === TRIAL) await deleteLink(kernel, index).catch(() => undefined);
    }
    kernel.close();
  }
}
