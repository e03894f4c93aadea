import { isIP } from 'node:net';

import { instanceLabel } from '../announcement.ts';
import type { Announcement, Candidate, CandidateSource } from '../candidates.ts';
import { type Random, systemRandom } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { Listeners } from '../../lib/listeners.ts';
import { Quota } from '../../lib/quota.ts';
import type { Sighting } from './cache.ts';
import { hostInterfaces, type LanInterface, lanInterfaces, onLinkTest } from './interfaces.ts';
import type { OpenLink } from './link.ts';
import type { OwnService } from './own-records.ts';
import { Refusals } from './refusals.ts';
import { Segment } from './segment.ts';
import { linkOpener } from './socket.ts';

export interface LanSourceOptions extends Basics {
  random?: Random;
  /** Interfaces by name; default: all that look like a LAN. */
  interfaces?: readonly string[];
  /** TTL of our records. Default 120. After a crash, others forget us after this time. */
  ttlSeconds?: number;
  /** Longest time between two browse queries. Default, and at most, an hour (RFC 6762, 5.2). */
  maxQueryIntervalMs?: number;
  /** How many announcements are kept at once, also those that cannot be believed. Default 1000. */
  maxCandidates?: number;
  openLink?: OpenLink;
  listInterfaces?: () => LanInterface[];
  /** All interfaces of this host, also those on which we do not speak. */
  listAllInterfaces?: () => LanInterface[];
  /** Calls back after interfaces or addresses of this host may have changed. Default: nobody tells. */
  onHostChange?: (listener: () => void) => () => void;
}

const DEFAULT_TTL_SECONDS = 120;
const HOUR_MS = 3_600_000;
const MAX_CANDIDATES = 1000;

const MAX_ENDPOINTS = 8;

/** How often interfaces are read: how soon a cable that was plugged in is noticed, and how often at most while the host changes. */
const FOLLOW_MS = 2000;
/** Where changes of the host are told, and nobody has told of one. */
const FOLLOW_UNTOLD_MS = 60_000;
/** RFC 6762, 8.1: after so many conflicts in this time, we wait before each further claim. */
const CONFLICTS = { count: 15, withinMs: 10_000, waitMs: 5000 };

/** Finds clusters on the same network segments by mDNS and DNS-SD, and announces this one once `announce` has said who we are. */
export class LanSource implements CandidateSource {
  readonly name = 'LAN discovery';
  readonly source = 'LAN' as const;
  readonly #options: LanSourceOptions;
  readonly #random: Random;
  readonly #openLink: OpenLink;
  readonly #quota: Quota;
  readonly #refusals: Refusals;
  readonly #segments = new Map<string, Segment>();
  readonly #listeners = new Listeners<[clusterID: string]>();
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#listeners.add;
  readonly #told = new Map<string, Candidate>();
  /** Made when one is needed, since few packets are refused; anew after interfaces were read again. */
  #onLinkTests: ((source: string) => boolean)[] | undefined;
  #service: OwnService | undefined;
  #conflictsAt: number[] = [];
  #cancelFollow = (): void => undefined;
  #following: Promise<void> = Promise.resolve();
  #isFollowing = false;
  #hasChanged = false;
  #unlisten = (): void => undefined;
  #running = false;

  constructor(options: LanSourceOptions) {
    this.#options = options;
    this.#random = options.random ?? systemRandom;
    this.#openLink = options.openLink ?? linkOpener(options.clock);
    this.#quota = new Quota(options.maxCandidates ?? MAX_CANDIDATES);
    this.#refusals = new Refusals(options.clock, options.log);
  }

  /** How many packets and announcements were refused since the start, by cause. */
  get refused(): ReadonlyMap<string, number> {
    return this.#refusals.counts;
  }

  /** Our name on the network. It changes after a conflict. */
  get label(): string | undefined {
    return this.#service && labelOf(this.#service);
  }

  async start(): Promise<void> {
    this.#running = true;
    this.#unlisten = this.#options.onHostChange?.(() => this.#changed()) ?? this.#unlisten;
    this.#following = this.#follow();
    await this.#following;
  }

  /** Says goodbye on all links. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#unlisten();
    this.#cancelFollow();
    await this.#following;
    await Promise.all([...this.#segments.values()].map(async (segment) => segment.close()));
    this.#segments.clear();
  }

  /**
   * Says who we are and where we can be dialled: at `hosts` (IP addresses, for example of a load balancer), or at this host's
   * addresses on each link. Until this is known, nothing is announced and no candidate is shown, since one of them may be this
   * cluster. Undefined takes the announcement back.
   */
  async announce(announcement: Announcement | undefined, hosts: readonly string[] = []): Promise<void> {
    const before = this.#service;
    const after = announcement && this.#serviceOf(announcement, hosts);
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    this.#service = after;
    if (before !== undefined && after !== undefined && labelOf(before) === labelOf(after)) {
      for (const segment of this.#segments.values()) segment.update(after);
    } else {
      await this.#claimAll(0);
    }
    this.#tellAll();
  }

  #serviceOf(announcement: Announcement, hosts: readonly string[]): OwnService {
    const wrong = hosts.find((host) => isIP(host) === 0);
    if (wrong !== undefined) {
      throw new TributaryError('Invalid', `a LAN announcement needs IP addresses, not "${wrong}"`);
    }
    const { ttlSeconds = DEFAULT_TTL_SECONDS } = this.#options;
    const before = this.#service;
    // A new name begins without the conflicts of the one before.
    const same = before !== undefined && instanceLabel(before.announcement) === instanceLabel(announcement);
    return {
      announcement,
      attempt: same ? before.attempt : 1,
      ttlSeconds,
      hosts,
    };
  }

  *candidates(): Iterable<Candidate> {
    const ids = new Set([...this.#segments.values()].flatMap(({ cache }) => [...cache.clusterIDs()]));
    for (const clusterID of ids) {
      const candidate = this.candidate(clusterID);
      if (candidate !== undefined) yield candidate;
    }
  }

  candidate(clusterID: string): Candidate | undefined {
    // Only the ID tells that a candidate is us: others may share our address.
    if (this.#service === undefined || this.#service.announcement.clusterID === clusterID) return undefined;
    return mergeSightings([...this.#segments.values()].flatMap(({ cache }) => cache.sightings(clusterID)));
  }

  async #follow(): Promise<void> {
    const { log, interfaces } = this.#options;
    const { listInterfaces = () => lanInterfaces(interfaces) } = this.#options;
    this.#hasChanged = false;
    this.#isFollowing = true;
    try {
      const now = listInterfaces();
      this.#onLinkTests = undefined;
      for (const [name, segment] of this.#segments) {
        if (now.some((iface) => iface.name === name)) continue;
        log.info('an interface has gone', { interface: name });
        this.#segments.delete(name);
        await segment.close();
      }
      await Promise.all(now.map(async (iface) => this.#segment(iface).follow(iface)));
    } catch (error) {
      log.warn('network interfaces could not be followed', { error: errorMessage(error) });
    }
    this.#isFollowing = false;
    if (this.#running) this.#followLater();
  }

  #followLater(): void {
    const { clock, onHostChange } = this.#options;
    const isTroubled = [...this.#segments.values()].some((segment) => segment.isTroubled);
    const isQuiet = onHostChange !== undefined && !this.#hasChanged && !isTroubled;
    this.#cancelFollow = clock.after(isQuiet ? FOLLOW_UNTOLD_MS : FOLLOW_MS, () => {
      this.#following = this.#follow();
    });
  }

  /** Pods come and go on a busy host: not every change is worth a look of its own. */
  #changed(): void {
    if (this.#hasChanged) return;
    this.#hasChanged = true;
    if (this.#isFollowing) return;
    this.#cancelFollow();
    this.#followLater();
  }

  #segment(iface: LanInterface): Segment {
    const known = this.#segments.get(iface.name);
    if (known !== undefined) return known;
    const { clock, log, maxQueryIntervalMs = HOUR_MS } = this.#options;
    const segment = new Segment(iface, {
      clock,
      log,
      random: this.#random,
      quota: this.#quota,
      openLink: this.#openLink,
      maxIntervalMs: Math.min(maxQueryIntervalMs, HOUR_MS),
      isOwnAddress: (address) => this.#isOwnAddress(address),
      onConflict: () => void this.#rename(),
      onChange: (clusterID) => this.#tell(clusterID),
      onRefused: (why, source) => this.#refused(why, source),
    });
    this.#segments.set(iface.name, segment);
    void segment.claim(this.#service);
    return segment;
  }

  /** Linux also hands a socket what came in by another interface. Such packets are not counted. */
  #refused(why: string, source: string): void {
    if (why === 'OffLink' && this.#isOnSomeLink(source)) return;
    this.#refusals.add(why, source);
  }

  #isOnSomeLink(source: string): boolean {
    const { listAllInterfaces = hostInterfaces } = this.#options;
    this.#onLinkTests ??= listAllInterfaces().map(onLinkTest);
    return this.#onLinkTests.some((onLink) => onLink(source));
  }

  #isOwnAddress(address: string): boolean {
    return [...this.#segments.values()].some(({ interface: { addresses } }) =>
      addresses.some((own) => own.address === address),
    );
  }

  /** RFC 6762, section 9: another name, on all links. */
  async #rename(): Promise<void> {
    const service = this.#service;
    if (service === undefined) return;
    const now = this.#options.clock.monotonic();
    const { count, withinMs, waitMs } = CONFLICTS;
    this.#conflictsAt = [...this.#conflictsAt.filter((at) => now - at < withinMs), now].slice(-count - 1);
    const taken = this.label;
    this.#service = { ...service, attempt: service.attempt + 1 };
    this.#options.log.warn('our mDNS name is taken', { taken, instead: this.label });
    await this.#claimAll(this.#conflictsAt.length > count ? waitMs : 0);
  }

  async #claimAll(waitMs: number): Promise<void> {
    const service = this.#service;
    await Promise.all([...this.#segments.values()].map(async (segment) => segment.claim(service, waitMs)));
  }

  #tellAll(): void {
    const seen = [...this.#segments.values()].flatMap(({ cache }) => [...cache.clusterIDs()]);
    for (const clusterID of new Set([...seen, ...this.#told.keys()])) this.#tell(clusterID);
  }

  #tell(clusterID: string): void {
    const candidate = this.candidate(clusterID);
    if (!differs(this.#told.get(clusterID), candidate)) return;
    if (candidate === undefined) this.#told.delete(clusterID);
    else this.#told.set(clusterID, candidate);
    this.#listeners.tell(clusterID);
  }
}

const labelOf = ({ announcement, attempt }: OwnService): string => instanceLabel(announcement, attempt);

/**
 * One candidate from all that is said of a cluster on all interfaces. Anybody can announce the ID of another cluster. So endpoints
 * are taken from each sender in turn, beginning with the one that is known the longest: an impostor adds endpoints, at which TLS will
 * refuse it, but cannot crowd out those of the cluster itself.
 */
function mergeSightings(sightings: readonly Sighting[]): Candidate | undefined {
  const sorted = sightings.toSorted((a, b) => a.firstSeen - b.firstSeen);
  const [first] = sorted;
  if (first === undefined) return undefined;
  const bySource = new Map<string, Set<string>>();
  for (const { source, endpoints } of sorted) {
    const said = bySource.get(source) ?? new Set();
    bySource.set(source, said);
    for (const endpoint of endpoints) if (said.size < MAX_ENDPOINTS) said.add(endpoint);
  }
  const endpoints = new Set<string>();
  for (let turn = 0; turn < MAX_ENDPOINTS; turn++) {
    for (const said of bySource.values()) {
      const endpoint = [...said][turn];
      if (endpoint !== undefined && endpoints.size < MAX_ENDPOINTS) endpoints.add(endpoint);
    }
  }
  return {
    clusterID: first.clusterID,
    ...(first.clusterName !== undefined && { clusterName: first.clusterName }),
    endpoints: [...endpoints],
    protocols: first.protocols,
    expiresAt: sorted.reduce((latest, { expiresAt }) => Math.max(latest, expiresAt), -Infinity),
  };
}

/** Whether listeners need to hear of the change. They do not when the candidate only expires later than before. */
function differs(before: Candidate | undefined, after: Candidate | undefined): boolean {
  const said = (candidate: Candidate | undefined): string =>
    candidate === undefined
      ? ''
      : JSON.stringify([candidate.clusterName, candidate.endpoints, candidate.protocols]);
  return said(before) !== said(after);
}
