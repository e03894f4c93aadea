/** What a virtual node adds to the start of pods. Pure. */

/** Of one pod, by one clock in milliseconds, as watches of both clusters have shown it for the first time. */
interface Moments {
  bound?: number;
  remoteCreated?: number;
  remoteReady?: number;
  homeReady?: number;
}

/** Pods of both sides, paired by the UID of the one at home. */
export class StartTimes {
  readonly #moments = new Map<string, Moments>();

  /** A pod at home, which is bound. */
  home(uid: string, isReady: boolean, at: number): void {
    const moments = this.#of(uid);
    moments.bound ??= at;
    if (isReady) moments.homeReady ??= at;
  }

  remote(homeUid: string, isReady: boolean, at: number): void {
    const moments = this.#of(homeUid);
    moments.remoteCreated ??= at;
    if (isReady) moments.remoteReady ??= at;
  }

  /** Pods of which all is known. */
  get complete(): number {
    return this.added().length;
  }

  /** Of each pod of which all is known: milliseconds from its binding until it exists over there, and from Ready there to Ready at home. */
  added(): number[] {
    return [...this.#moments.values()].flatMap(({ bound, remoteCreated, remoteReady, homeReady }) =>
      bound === undefined ||
      remoteCreated === undefined ||
      remoteReady === undefined ||
      homeReady === undefined
        ? []
        : [remoteCreated - bound + homeReady - remoteReady],
    );
  }

  #of(uid: string): Moments {
    const known = this.#moments.get(uid);
    if (known !== undefined) return known;
    const fresh: Moments = {};
    this.#moments.set(uid, fresh);
    return fresh;
  }
}
