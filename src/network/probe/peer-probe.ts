import { type Random, spreadMs } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import { present } from '../../lib/fields.ts';
import { beatTerms, EARLY_MS, FULL_INTERVALS, nextBeatAt } from './beats.ts';
import { Listening } from './listening.ts';
import { innerMtu, narrowed, nextSizes, type SearchState, SMALLEST_MTU } from './path-mtu.ts';
import type { ProbeClient, Question } from './probe-client.ts';
import { Samples } from './samples.ts';

/** A peer's gateway. */
export interface ProbeTarget {
  clusterID: string;
  /** Address of that gateway, as we see it. */
  address: string;
  /** Address of our own gateway, on the WireGuard link. */
  source: string;
  /** As what that gateway sees `source`. Absent: it has not said so. */
  as?: string;
  /** Where the tunnel's packets go: literal `host:port`. */
  endpoint?: string;
  /** Whether that gateway asks while nothing flows, and ours listens. Default: both ask. */
  listens?: boolean;
}

export interface ProbeResult {
  alive: boolean;
  /** Since when `alive` has this value, in milliseconds since 1970. */
  since: number;
  /** Median of the last ten answers. */
  rttMs?: number;
  /** Of the last 30 probes. For a peer that is alive, of those since the answer that showed it. */
  lossPercent: number;
  /** The largest packet that went through the tunnel, in bytes. Absent: not measured yet. */
  mtu?: number;
  /** Milliseconds since 1970. */
  lastAnswerMs?: number;
  /** Probes since then that were not answered. Absent: none. */
  missed?: number;
}

interface PeerProbeOptions {
  clock: Clock;
  asker: ProbeClient;
  /** Largest packet of the WireGuard link, in bytes. */
  mtu: number;
  pathMtu: (address: string) => Promise<number | undefined>;
  /** Between two beats. */
  intervalMs: number;
  /** Between two looks at what the kernel knows of the path, while packets flow. */
  lookMs: () => number;
  /** Whether anything but probes goes into the tunnels. */
  isFlowing: () => boolean;
  random: Random;
  /** Called when `alive` or `mtu` has changed. */
  changed: () => void;
  /** Called when a probe was not answered, after one that was. */
  missed: () => void;
}

/** After so many beats in a row without any answer, the peer is dead. */
const DEAD_AFTER = 5;
/** Copies of a probe whose loss means that the size in use is wrong. */
const COPIES = 3;
/** How long we wait, after the answer to the packet that was sent last, for the answers to those before it. */
const GRACE = { leastMs: 50, ofRoundTrip: 0.5 };
/** When a path that has become narrower is tried again: soon at first, then more and more rarely. */
const WIDER = { firstMs: 10_000, lastMs: 5 * 60_000 };

interface SendOptions {
  /** Of each size. */
  copies?: number;
  /** Copies of the small packet. */
  small?: number;
  timeoutMs?: number;
}

/** One peer: beats, and the search for the largest packet that goes through. */
export class PeerProbe {
  readonly #options: PeerProbeOptions;
  #target: ProbeTarget;
  readonly #stop = new AbortController();
  readonly #samples = new Samples();
  /** Undefined: there was neither an answer nor enough silence yet. */
  #alive: boolean | undefined;
  #since: number;
  #lastAnswerMs: number | undefined;
  /** Beats in a row without an answer from the responder, and those without one from its kernel either. */
  #unanswered = 0;
  #silent = 0;
  /** When a beat last looked at what fits through. Monotonic. */
  #fullAt = -Infinity;
  readonly #listening: Listening;
  #wake: () => void = () => undefined;
  #isLooking = false;
  #mtu: number | undefined;
  /** The largest packet that the kernel's path MTU leaves room for. */
  #room: number;
  /** Monotonic. */
  #widenAt = 0;
  #widenMs = WIDER.firstMs;

  constructor(target: ProbeTarget, options: PeerProbeOptions) {
    this.#target = target;
    this.#options = options;
    this.#since = options.clock.now();
    this.#room = options.mtu;
    this.#listening = new Listening(options.intervalMs);
  }

  get target(): ProbeTarget {
    return this.#target;
  }

  /** Undefined while it is not known whether the peer is alive. */
  result(): ProbeResult | undefined {
    if (this.#alive === undefined) return undefined;
    const rttMs = this.#samples.rttMs;
    return {
      alive: this.#alive,
      since: this.#since,
      lossPercent: this.#samples.lossPercent,
      ...(rttMs !== undefined && { rttMs }),
      ...(this.#mtu !== undefined && { mtu: this.#mtu }),
      ...(this.#lastAnswerMs !== undefined && { lastAnswerMs: this.#lastAnswerMs }),
      ...(this.#silent > 0 && { missed: this.#silent }),
    };
  }

  /** Whether the peer is alive and has answered the last probe. */
  get isCalm(): boolean {
    return this.#alive === true && this.#unanswered === 0;
  }

  /** The same gateway, perhaps with another endpoint. */
  changed(target: ProbeTarget): void {
    if (target.endpoint !== this.#target.endpoint) this.#widenAt = this.#options.clock.monotonic();
    if (target.listens !== true) this.#listening.end();
    this.#target = target;
  }

  /** The other end has asked. That it had an answer to the question before proves both directions, as an answer to ours does. */
  asked(isHeard: boolean): void {
    const { clock } = this.#options;
    if (this.#target.listens !== true || !this.isCalm) return;
    this.#listening.asked(isHeard, clock.monotonic());
    if (isHeard) {
      this.#lastAnswerMs = clock.now();
      this.#samples.heard();
    }
    this.#wake();
  }

  start(): void {
    const { clock, random, intervalMs } = this.#options;
    this.#fullAt = clock.monotonic() - random() * FULL_INTERVALS * intervalMs;
    void this.#repeat(random() * (intervalMs / 4), this.#beat);
    void this.#lookOften();
    this.#widenAt = clock.monotonic();
  }

  stop(): void {
    this.#stop.abort();
    this.#wake();
  }

  /** Measured from start to start, but never runs two at a time. */
  async #repeat(firstMs: number, step: () => Promise<void>): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    try {
      await clock.sleep(firstMs, signal);
      while (!signal.aborted) {
        const began = clock.monotonic();
        await step();
        // Whoever is woken judges anew when the next beat is.
        while (!signal.aborted && (await this.#isWokenBefore(this.#nextBeat(began))));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Waits; true if the other end has asked meanwhile, which may put off what was waited for, or call for it at once. */
  async #isWokenBefore(at: number): Promise<boolean> {
    const { clock } = this.#options;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = clock.after(Math.max(0, at - clock.monotonic()), () => resolve(false));
    this.#wake = () => resolve(true);
    try {
      return await promise;
    } finally {
      cancel();
    }
  }

  /** Monotonic. */
  #nextBeat(began: number): number {
    const { clock, intervalMs, random, isFlowing } = this.#options;
    // Whoever does not know what fits through has to ask.
    const listensUntil = this.#mtu === undefined ? undefined : this.#listening.lastsUntil;
    return nextBeatAt(began, {
      wallMs: clock.now() - clock.monotonic() + began,
      intervalMs,
      random,
      isFlowing: isFlowing(),
      isCalm: this.isCalm,
      listensUntil,
    });
  }

  /**
   * Sends a small probe, and one of full size, since a path may swallow only large packets; while nothing flows, not each time. Where the small probe before was not
   * answered, it also knocks at the peer's kernel, which answers while the agent there is being restarted.
   */
  readonly #beat = async (): Promise<void> => {
    const { clock, intervalMs, asker, missed } = this.#options;
    const unasked = this.#listening.missesAt(clock.monotonic());
    const knock = this.#unanswered > 0 ? asker.knock(this.#question()) : Promise.resolve(false);
    if (unasked > 0) missed();
    const isFlowing = this.#options.isFlowing();
    const isDoubtful = unasked > 0 || !this.isCalm;
    const { intervals, copies } = beatTerms({ isFlowing, isDoubtful });
    const sizes = this.#sizesOfBeat(isFlowing);
    const terms = { timeoutMs: intervals * intervalMs, small: copies };
    const { rttMs, passing } = await this.#send(sizes, terms);
    if (this.#stop.signal.aborted) return;
    if (rttMs === undefined) return this.#missed({ intervals, unasked, knock });
    this.#unanswered = 0;
    this.#answered(rttMs);
    await this.#judgeSize(sizes, passing);
  };

  async #missed(beat: { intervals: number; unasked: number; knock: Promise<boolean> }): Promise<void> {
    const { intervals, unasked, knock } = beat;
    this.#unanswered += 1;
    if (this.#unanswered === 1 && unasked === 0) this.#options.missed();
    // Loss cannot be measured while the responder is away.
    if (await knock) return this.#answered();
    this.#samples.missed();
    this.#silent += intervals + unasked;
    if (this.#silent >= DEAD_AFTER && this.#alive !== false) this.#turn(false);
  }

  #sizesOfBeat(isFlowing: boolean): number[] {
    const { clock, intervalMs } = this.#options;
    const now = clock.monotonic();
    const isTurn = now - this.#fullAt + EARLY_MS >= FULL_INTERVALS * intervalMs;
    if (isTurn || isFlowing) this.#fullAt = now;
    if (isFlowing) void this.#lookOften();
    else if (isTurn) void this.#look();
    return this.#mtu !== undefined && (isFlowing || isTurn) ? [this.#mtu] : [];
  }

  /** Looks again and again, for as long as packets flow. */
  async #lookOften(): Promise<void> {
    if (this.#isLooking) return;
    const { clock, lookMs, isFlowing } = this.#options;
    const { signal } = this.#stop;
    this.#isLooking = true;
    try {
      do {
        const next = clock.monotonic() + lookMs();
        await this.#look();
        await clock.sleep(Math.max(0, next - clock.monotonic()), signal);
      } while (isFlowing());
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#isLooking = false;
    }
  }

  /** The responder has answered after so many milliseconds. Undefined: the kernel of its host has answered. */
  #answered(rttMs?: number): void {
    if (this.#alive !== true) this.#samples.forgetLoss();
    if (rttMs !== undefined) this.#samples.answered(rttMs);
    this.#silent = 0;
    this.#lastAnswerMs = this.#options.clock.now();
    if (this.#alive !== true) this.#turn(true);
  }

  #turn(alive: boolean): void {
    this.#alive = alive;
    this.#since = this.#options.clock.now();
    this.#options.changed();
  }

  /** After the peer has answered, and of these sizes those have passed: whether the size in use is right. */
  async #judgeSize(sent: readonly number[], passing: ReadonlySet<number>): Promise<void> {
    const mtu = this.#mtu;
    if (mtu === undefined) return this.#search();
    if (sent.length > 0 && !passing.has(mtu)) {
      const again = await this.#send([mtu], { copies: COPIES });
      if (again.rttMs !== undefined && !again.passing.has(mtu)) return this.#search();
    }
    if (mtu < this.#room && this.#options.clock.monotonic() >= this.#widenAt) return this.#search();
  }

  /** Routers tell the kernel of this host which packets of the tunnel are too large. wireguard-go does not use that. */
  async #look(): Promise<void> {
    const before = this.#room;
    await this.#readRoom();
    if (this.#mtu !== undefined && this.#mtu > this.#room) this.#setMtu(this.#room);
    else if (this.#room > before) this.#widenAt = this.#options.clock.monotonic();
  }

  async #readRoom(): Promise<void> {
    const { mtu, pathMtu } = this.#options;
    const endpoint = splitEndpoint(this.#target.endpoint ?? '')?.host;
    const outer = endpoint === undefined ? undefined : await pathMtu(endpoint).catch(() => undefined);
    this.#room = outer === undefined ? mtu : Math.min(mtu, innerMtu(outer, endpoint ?? ''));
  }

  /** Ends without a result when the peer falls silent meanwhile: that is for the beats to judge. */
  async #search(): Promise<void> {
    const top = this.#room;
    const first = await this.#send([top], { copies: COPIES });
    // Most paths carry the largest packet.
    let state: SearchState = first.passing.has(top)
      ? { fits: top, over: top + 1 }
      : { fits: SMALLEST_MTU, over: top };
    let isAnswered = first.rttMs !== undefined;
    for (let sizes = nextSizes(state); isAnswered && sizes.length > 0; sizes = nextSizes(state)) {
      const { rttMs, passing } = await this.#send(sizes, { copies: 2 });
      isAnswered = rttMs !== undefined;
      state = narrowed(state, sizes, [...passing]);
    }
    if (!isAnswered || this.#stop.signal.aborted) return;
    // The first large probe may have taught the kernel; the second went in fragments, which the batches of wireguard-go
    // cannot.
    await this.#readRoom();
    this.#widenLater();
    this.#setMtu(Math.min(state.fits, this.#room));
  }

  #widenLater(): void {
    const { clock, random } = this.#options;
    this.#widenAt = clock.monotonic() + spreadMs(this.#widenMs, random);
    this.#widenMs = Math.min(WIDER.lastMs, this.#widenMs * 2);
  }

  #setMtu(mtu: number): void {
    if (mtu === this.#mtu) return;
    if (mtu < (this.#mtu ?? 0)) {
      this.#widenMs = WIDER.firstMs;
      this.#widenLater();
    }
    this.#mtu = mtu;
    this.#options.changed();
  }

  /**
   * Sends so many copies of each size, and a small packet after them. A tunnel keeps the order of packets, so the answer to
   * the small one (`rttMs`) says that answers to all others would have come: what is not `passing` was lost for its size. A
   * wait of fixed length would take a machine that was busy for a moment for a path that swallows large packets.
   */
  async #send(
    sizes: readonly number[],
    { copies = 1, small = 1, timeoutMs = this.#options.intervalMs }: SendOptions,
  ): Promise<{ rttMs: number | undefined; passing: ReadonlySet<number> }> {
    const { asker, clock } = this.#options;
    const question = this.#question(timeoutMs);
    const passing = new Set<number>();
    const send = async (size: number): Promise<void> => {
      if ((await asker.ask({ ...question, size })) !== undefined) passing.add(size);
    };
    const all = sizes.flatMap((size) => Array.from({ length: copies }, async () => send(size)));
    const rttMs = await firstAnswer(Array.from({ length: small }, async () => asker.ask(question)));
    // What came before the answer to the small one is there.
    if (rttMs === undefined || sizes.every((size) => passing.has(size))) return { rttMs, passing };
    const rest = new AbortController();
    const graceMs = Math.max(GRACE.leastMs, GRACE.ofRoundTrip * rttMs);
    const grace = clock.sleep(graceMs, rest.signal).catch(() => undefined);
    await Promise.race([grace, Promise.all(all)]);
    rest.abort();
    return { rttMs, passing };
  }

  #question(timeoutMs = this.#options.intervalMs): Question {
    const { source, as, address } = this.#target;
    return { source, ...present({ as }), address, timeoutMs, isHeard: this.isCalm };
  }
}

/** Of copies of one question; undefined if none was answered. */
async function firstAnswer(answers: readonly Promise<number | undefined>[]): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  for (const answer of answers) void answer.then((rttMs) => rttMs !== undefined && resolve(rttMs));
  void Promise.all(answers).then(([first]) => resolve(first));
  return promise;
}
