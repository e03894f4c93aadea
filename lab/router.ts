/** What the router between the segments of a lab lets through: as a firewall with NAT, or not at all. */
import type { Lab } from './lab.ts';

/** Nat: connections are opened from the inside only, and come from the router's address. Cut: nothing passes. */
export type RouterState = 'open' | 'nat' | 'cut';

export interface RouterSides {
  /** Addresses or ranges, as nftables writes them. */
  readonly inside: string;
  readonly outside: string;
}

const TABLE = 'inet lab-router';

/** Sets what passes between the two sides, also for connections that are open. Everybody else passes. */
export async function setRouter(
  lab: Lab,
  { inside, outside }: RouterSides,
  state: RouterState,
): Promise<void> {
  const inward = `ip saddr ${outside} ip daddr ${inside}`;
  const outward = `ip saddr ${inside} ip daddr ${outside}`;
  const rules: Record<RouterState, string[]> = {
    open: [],
    nat: [`${inward} ct state new counter drop`],
    cut: [`${inward} counter drop`, `${outward} counter drop`],
  };
  const masquerade = state === 'open' ? '' : `${outward} masquerade`;
  const stdin = `table ${TABLE}
delete table ${TABLE}
table ${TABLE} {
  chain forward { type filter hook forward priority filter; ${rules[state].join('; ')}
  }
  chain postrouting { type nat hook postrouting priority srcnat; ${masquerade}
  }
}
`;
  await lab.onRouter(['nft', '-f', '-'], { stdin });
}

/** Packets that the router has dropped since its state was set. */
export async function droppedByRouter(lab: Lab): Promise<number> {
  const listed = await lab.onRouter(['nft', 'list', 'table', ...TABLE.split(' ')]);
  return [...listed.matchAll(/counter packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}
