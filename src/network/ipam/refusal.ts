import type { TunnelReason } from '../../api/tunnel.ts';

/** For Tunnel.status.refused. */
export interface RefusedPrefix {
  /** As it was given, cut where it is too long. */
  prefix: string;
  reason: TunnelReason;
  /** One line. */
  message: string;
}

/** What a peer wrote is shown to people: nothing that moves the cursor or reorders text. */
const printable = (text: string, max: number): string => text.slice(0, max).replaceAll(/[^\x20-\x7e]/g, '?');

export const refusal = (prefix: string, reason: TunnelReason, message: string): RefusedPrefix => ({
  prefix: printable(prefix, 64),
  reason,
  message: printable(message, 512),
});
