import { TUNNEL_LIMITS } from '../../api/limits.ts';
import { TUNNEL_REASONS, type PrefixUse } from '../../api/tunnel.ts';
import { errorMessage } from '../../lib/errors.ts';
import { formatPrefix, parsePrefix } from '../../lib/prefix.ts';
import type { IpFamily, Prefix } from '../../lib/prefix.ts';
import { RangeTree } from './range-tree.ts';
import { refusal, type RefusedPrefix } from './refusal.ts';
import { whyHostile } from './special.ts';

export interface WantedPrefix {
  prefix: string;
  use: PrefixUse;
}

export interface SoundPrefix {
  prefix: Prefix;
  /** The prefix in canonical text. */
  text: string;
  use: PrefixUse;
}

export interface Sifted {
  /** Disjoint, in the order given. */
  sound: SoundPrefix[];
  refused: RefusedPrefix[];
}

/** Of two prefixes of one peer that overlap, the first counts; so do the first of too many. */
export function sift(wanted: readonly WantedPrefix[]): Sifted {
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

/** All addresses of each family. */
export const wholeSpaces = (): Record<IpFamily, RangeTree> => ({
  4: new RangeTree({ family: 4, base: 0n, length: 0 }),
  6: new RangeTree({ family: 6, base: 0n, length: 0 }),
});

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
