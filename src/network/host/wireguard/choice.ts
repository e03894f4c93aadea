/** Whose WireGuard is used: the kernel's, or the program wireguard-go. Pure; docs/decisions/0092-whose-wireguard.md gives the reasons. */
import type { WireGuardKind } from '../../../api/tunnel.ts';
import type { WireGuardLink } from '../host-config.ts';
import { isKernelError } from '../rtnetlink.ts';

/** By the kind that the kernel tells of a link; undefined for a link that cannot be one of WireGuard. */
export function wireguardOf(kind: string | undefined): WireGuardKind | undefined {
  if (kind === 'wireguard') return 'Kernel';
  return kind === 'tun' ? 'Userspace' : undefined;
}

/** Whether we ask the kernel for the link; wireguard-go makes its own. */
export const isMadeHere = ({ by = 'auto' }: WireGuardLink): boolean => by !== 'userspace';

/**
 * Whether a link of ours that is there can stay. With `auto` each can, whatever the kernel has learnt since: connections go on, and the
 * choice is made anew when the link is gone. A link of the kernel outlives every program, so whoever wants wireguard-go takes it away.
 */
export function isWantedWireGuard({ by = 'auto' }: WireGuardLink, kind: string | undefined): boolean {
  const there = wireguardOf(kind);
  return there === 'Userspace' || (there === 'Kernel' && by !== 'userspace');
}

/**
 * What the kernel's answer to the wish for a link of kind `wireguard` says. It loads the module by itself where it can.
 *
 * @throws the answer where it says nothing of WireGuard: EPERM without CAP_NET_ADMIN, ENOMEM, ...
 */
export function hasWireGuard(answer: unknown): boolean {
  if (isKernelError(answer, 'EEXIST')) return true;
  if (isKernelError(answer, 'EOPNOTSUPP')) return false;
  throw answer;
}

/** Why there is no link, and what to do; for people. */
export function noWireGuard({ name, by = 'auto' }: WireGuardLink): string {
  const missing = 'wireguard-go has not made the link yet; look at its container';
  if (by === 'userspace') return `link ${name}: ${missing}`;
  const kernel = `link ${name}: this kernel has no WireGuard, and`;
  if (by === 'auto') return `${kernel} ${missing}`;
  return `${kernel} --wireguard kernel allows nothing else; load its module wireguard, or choose auto`;
}
