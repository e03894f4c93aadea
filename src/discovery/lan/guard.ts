import type { Clock } from '../../lib/clock.ts';
import { TokenBucket, TokenBuckets } from '../../lib/token-bucket.ts';
import type { LanInterface } from './interfaces.ts';
import { onLinkTest } from './interfaces.ts';

/** RFC 6762, section 17. */
const MAX_PACKET_BYTES = 9000;
const HEADER_BYTES = 12;
/** Records and questions together. Compressed names make many of them expensive to read. */
const MAX_RECORDS = 512;
/** From one address: an announcement, a goodbye and answers of a busy host fit well. */
const PER_SOURCE = { burst: 100, perSecond: 20, maxKeys: 1024 };
/** From all together; a thousand clusters may answer the first query at once. */
const PER_LINK = { burst: 2000, perSecond: 500 };

export type Refusal = 'OffLink' | 'TooLarge' | 'TooShort' | 'TooManyRecords' | 'TooFast' | 'WrongPort';

export interface PacketSource {
  address: string;
  port: number;
}

/** Decides, before anything of it is parsed, whether a datagram is looked at. */
export class Guard {
  readonly #onLink: (source: string) => boolean;
  readonly #perSource: TokenBuckets;
  readonly #perLink: TokenBucket;

  constructor(iface: LanInterface, clock: Clock) {
    this.#onLink = onLinkTest(iface);
    this.#perSource = new TokenBuckets({ clock, ...PER_SOURCE });
    this.#perLink = new TokenBucket({ clock, ...PER_LINK });
  }

  /** Undefined: look at it. */
  refusal(bytes: Buffer, source: PacketSource): Refusal | undefined {
    if (!this.#onLink(source.address)) return 'OffLink';
    if (bytes.length > MAX_PACKET_BYTES) return 'TooLarge';
    if (bytes.length < HEADER_BYTES) return 'TooShort';
    const counts = [4, 6, 8, 10].map((offset) => bytes.readUInt16BE(offset));
    if (counts.reduce((sum, count) => sum + count, 0) > MAX_RECORDS) return 'TooManyRecords';
    // RFC 6762, section 6: responses come from port 5353 alone.
    const response = (bytes.readUInt16BE(2) & 0x80_00) !== 0;
    if (response && source.port !== MDNS_PORT) return 'WrongPort';
    return this.#perSource.of(source.address).tryTake(1) && this.#perLink.tryTake(1) ? undefined : 'TooFast';
  }
}

export const MDNS_PORT = 5353;
