export interface PlaceLimits {
  /** Connections in all. */
  total: number;
  /** Of one caller. */
  perCaller: number;
  /** Of all unknown callers together: anybody can make any number of identities. */
  strangers: number;
  /** Connections whose caller is not verified yet. */
  handshakes: number;
  /** Of those, from one address. */
  handshakesPerAddress: number;
}

export const DEFAULT_PLACES: Readonly<PlaceLimits> = {
  total: 2_048,
  perCaller: 256,
  strangers: 128,
  handshakes: 128,
  handshakesPerAddress: 32,
};

type Leave = () => void;

/** Counts connections, so that nobody can take all of them. */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #byCaller = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();
  #total = 0;
  #strangers = 0;
  #handshakes = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#total;
  }

  /** For a connection that has not proved an identity yet; undefined when there is no place. Leaving twice is harmless. */
  arrive(address: string): Leave | undefined {
    const { total, handshakes, handshakesPerAddress } = this.#limits;
    const fromThere = this.#byAddress.get(address) ?? 0;
    const isFull = this.#total >= total || this.#handshakes >= handshakes;
    if (isFull || fromThere >= handshakesPerAddress) return undefined;
    this.#total += 1;
    this.#handshakes += 1;
    this.#byAddress.set(address, fromThere + 1);
    return once(() => {
      this.#total -= 1;
      this.#handshakes -= 1;
      decrease(this.#byAddress, address);
    });
  }

  /** For a connection whose identity is proved; the caller leaves the place that `arrive` gave. */
  admit(clusterID: string, isKnown: boolean): Leave | undefined {
    const { total, perCaller, strangers } = this.#limits;
    const ofCaller = this.#byCaller.get(clusterID) ?? 0;
    if (this.#total >= total || ofCaller >= perCaller) return undefined;
    if (!isKnown && this.#strangers >= strangers) return undefined;
    this.#total += 1;
    if (!isKnown) this.#strangers += 1;
    this.#byCaller.set(clusterID, ofCaller + 1);
    return once(() => {
      this.#total -= 1;
      if (!isKnown) this.#strangers -= 1;
      decrease(this.#byCaller, clusterID);
    });
  }
}

function once(leave: Leave): Leave {
  let left = false;
  return () => {
    if (!left) leave();
    left = true;
  };
}

function decrease(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
