import { readFileSync } from 'node:fs';

/** Packets that a link has sent since it was made. Undefined where there is no such link, or no sysfs that shows it. */
export function sentPackets(link: string): number | undefined {
  try {
    return Number(readFileSync(`/sys/class/net/${link}/statistics/tx_packets`, 'latin1'));
  } catch {
    return undefined;
  }
}
