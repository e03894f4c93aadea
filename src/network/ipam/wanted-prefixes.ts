import { TUNNEL_LIMITS } from '../../api/limits.ts';
import { type PrefixUse, TUNNEL_REASONS, type TunnelReason } from '../../api/tunnel.ts';
import { errorMessage } from '../../lib/errors.ts';
import { formatPrefix, type IpFamily, parsePrefix, type Prefix } from '../../lib/prefix.ts';
import { type RangeTree, wholeSpaces } from './range-tree.ts';
import { whyHostile } from './special-ranges.ts';

export interface WantedPrefix {
  prefix: string;
  use: PrefixUse;
}

interface SoundPrefix {
  prefix: Prefix;
  /** The prefix in canonical text. */
  text: string;
  use: PrefixUse;
}

interface CheckedPrefixes {
  /** They do not overlap, and are in the order given. */
  sound: SoundPrefix[];
  refused: RefusedPrefix[];
}

/** An entry of Tunnel.status.refused. */
export interface RefusedPrefix {
  /** As it was given, cut where it is too long. */
  prefix: string;
  reason: TunnelReason;
  /** One line. */
  message: string;
}

/** Checks the prefixes that one peer names. Of two that overlap the first counts, and of too many the first ones. */
export function checkWanted(wanted: readonly WantedPrefix[]): CheckedPrefixes {
  const sound: SoundPrefix[] = [];
  const refused: RefusedPrefix[] = [];
  const seen = wholeSpaces();
  for (const { prefix: given, use } of wanted) {
    const parsed = parse(given);
    const why = typeof parsed === 'string' ? parsed : whyNot(parsed, sound.length, seen);
    if (typeof parsed === 'string' || why !== undefined) {
      refused.push(refusal(given, TUNNEL_REASONS.prefixRefused, why ?? ''));
    } else {
      sound.push({ prefix: parsed, text: formatPrefix(parsed), use });
    }
  }
  return { sound, refused };
}

function parse(text: string): Prefix | string {
  try {
    return parsePrefix(text);
  } catch (error) {
    return errorMessage(error);
  }
}

function whyNot(prefix: Prefix, count: number, seen: Record<IpFamily, RangeTree>): string | undefined {
  const hostile = whyHostile(prefix);
  if (hostile !== undefined) return hostile;
  if (count >= TUNNEL_LIMITS.views) return `a peer may have at most ${TUNNEL_LIMITS.views} prefixes`;
  if (seen[prefix.family].take(prefix)) return undefined;
  return `${formatPrefix(prefix)} overlaps another prefix of the same peer`;
}

/** Texts of peers are shown to people: nothing in them may move the cursor or reorder text. */
const printable = (text: string, max: number): string => text.slice(0, max).replaceAll(/[^\x20-\x7e]/g, '?');

export const refusal = (prefix: string, reason: TunnelReason, message: string): RefusedPrefix => ({
  prefix: printable(prefix, 64),
  reason,
  message: printable(message, 512),
});
