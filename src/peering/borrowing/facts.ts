import type { Advertisement } from '../../api/advertisement.ts';
import type { Heard } from './heard.ts';
import type { BorrowingWish } from './ports.ts';
import type { WantedNamespaces } from './wanted.ts';

/** All that is known of one provider, at one moment. */
export interface Facts {
  nowMs: number;
  wish: BorrowingWish;
  wanted: WantedNamespaces;
  heard: Heard;
  /** It is at the other end of a link now. */
  isLinked: boolean;
  /** The contract that the provider has proved, in its last word, to have signed. */
  proved?: { text: string; signature: string };
  advertisement: Advertisement | undefined;
  /** A VirtualNode, a Secret, or what its Advertisement names: something may be there because of it. */
  hasBelongings: boolean;
}
