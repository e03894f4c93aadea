import type { WantedCondition } from '../../api/conditions.ts';
import {
  type Tunnel,
  TUNNEL_CONDITIONS,
  type TunnelReason,
  type WireGuardKind,
  tunnels as tunnelType,
} from '../../api/tunnel.ts';
import type { Cache } from '../../kube/cache.ts';
import { type ControllerBasics, Controller, type ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { hasCode } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { Pace, type PaceLimits } from '../../lib/pace.ts';
import type { HostReport, WireGuardPeerState } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/peer-probe.ts';
import { tunnelConditions, type TunnelObservation } from './conditions.ts';
import { reportPerTunnel } from './host-report.ts';
import { type ConnectionFacts, connectionOf, statusPatch, type StatusPatch } from './status.ts';

type TunnelWanted = WantedCondition<string, TunnelReason>;

interface ReportsOptions extends ControllerBasics {
  events: EventRecorder;
  tunnels: Pick<Cache<Tunnel>, 'get'>;
}

/** All that is known of all tunnels at one moment. */
interface Round {
  /** Milliseconds since 1970. */
  now: number;
  gateway: string;
  linkMtu: number;
  by?: WireGuardKind;
  tunnels: readonly Tunnel[];
  exported: readonly string[];
  dialable: boolean;
  refused: ReadonlyMap<string, string>;
  probes: ReadonlyMap<string, ProbeResult>;
  endpointOf: (tunnel: Tunnel) => string | undefined;
  stateOf: (tunnel: Tunnel) => WireGuardPeerState | undefined;
  receivedMs: (tunnel: Tunnel) => number | undefined;
  host?: HostReport;
}

interface Report {
  seen: TunnelObservation;
  connection: ConnectionFacts;
}

/**
 * Conditions and the measured MTU are written at once, and every node hears of it; a peer that answers now and then could make
 * them change with each look. A tunnel that was made anew begins anew: how often that happens, the budget of its documents bounds.
 */
export const VERDICT_PACE: PaceLimits = { free: 20, baseMs: 1_000, quietMs: 30_000 };

/** Writes what is observed into the status of the tunnels, where it has changed. */
export class Reports {
  readonly controller: Controller;
  readonly #options: ReportsOptions;
  #reports = new Map<string, Report>();
  /** Monotonic time of the last write, by name. */
  readonly #written = new Map<string, number>();
  readonly #verdicts: Pace;

  constructor(options: ReportsOptions) {
    const { clock, log, metrics } = options;
    this.#options = options;
    this.#verdicts = new Pace({ clock, ...VERDICT_PACE });
    this.controller = new Controller({
      name: 'tunnel status',
      concurrency: 4,
      clock,
      log,
      ...(metrics && { metrics }),
      reconcile: async (name, { signal }) => this.#write(name, signal),
    });
  }

  observe(round: Round): void {
    const hostFor = round.host && reportPerTunnel(round.host, round.tunnels);
    this.#reports = new Map(
      round.tunnels.map((tunnel) => [tunnel.metadata.name, reportOf(tunnel, round, hostFor?.(tunnel))]),
    );
    for (const name of this.#written.keys()) if (!this.#reports.has(name)) this.#written.delete(name);
    for (const name of this.#reports.keys()) if (this.#news(name) !== undefined) this.controller.add(name);
  }

  samples(): Map<string, TunnelSample> {
    return new Map([...this.#reports].map(([name, report]) => [name, sampleOf(report)]));
  }

  #news(name: string): { tunnel: Tunnel; patch: StatusPatch; conditions: TunnelWanted[] } | undefined {
    const { tunnels, clock } = this.#options;
    const tunnel = tunnels.get(name);
    const report = this.#reports.get(name);
    if (tunnel === undefined || report === undefined) return undefined;
    const conditions = tunnelConditions(tunnel, report.seen);
    const patch = statusPatch({
      tunnel,
      connection: connectionOf(report.connection),
      conditions,
      now: clock.now(),
      sinceWriteMs: clock.monotonic() - (this.#written.get(name) ?? -Infinity),
    });
    return patch && { tunnel, patch, conditions };
  }

  async #write(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const news = this.#news(name);
    if (news === undefined) return {};
    const waitMs = isVerdict(news.patch) ? this.#verdicts.turn(news.tunnel.metadata.uid) : 0;
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { client, clock } = this.#options;
    const { tunnel, patch, conditions } = news;
    // The UID makes sure that a tunnel of that name that was made anew is not written.
    const body = { metadata: { uid: tunnel.metadata.uid }, status: patch };
    try {
      await client.patch(tunnelType, { name }, { type: 'merge', body }, { subresource: 'status', signal });
    } catch (error) {
      if (!hasCode(error, 'NotFound')) throw error;
      return {};
    }
    this.#written.set(name, clock.monotonic());
    this.#tell(tunnel, conditions);
    return {};
  }

  #tell(tunnel: Tunnel, conditions: readonly TunnelWanted[]): void {
    const isReady = ({ type }: { type: string }): boolean => type === TUNNEL_CONDITIONS.ready;
    const before = tunnel.status?.conditions?.find(isReady);
    const now = conditions.find(isReady);
    if (now === undefined || now.status === 'Unknown') return;
    if (before?.status === now.status && (now.status === 'True' || before.reason === now.reason)) return;
    const { events } = this.#options;
    if (now.status === 'True') events.event(tunnel, 'Normal', 'TunnelReady', now.message);
    else events.event(tunnel, 'Warning', now.reason, now.message);
  }
}

const isVerdict = ({ conditions, connection = {} }: StatusPatch): boolean =>
  conditions !== undefined || Object.hasOwn(connection, 'mtu');

function reportOf(tunnel: Tunnel, round: Round, host: HostReport | undefined): Report {
  const { name } = tunnel.metadata;
  const wireguard = round.stateOf(tunnel);
  const receivedMs = round.receivedMs(tunnel);
  const probe = round.probes.get(name);
  const endpoint = round.endpointOf(tunnel);
  const refused = round.refused.get(name);
  const shared = present({ endpoint, probe });
  return {
    seen: {
      ...shared,
      now: round.now,
      exported: round.exported,
      dialable: round.dialable,
      ...present({
        host,
        handshakeMs: wireguard?.handshakeMs,
        receivedMs,
        refused,
      }),
    },
    connection: {
      ...shared,
      gateway: round.gateway,
      linkMtu: round.linkMtu,
      ...present({ by: round.by, wireguard }),
    },
  };
}

function sampleOf({ connection: { wireguard, probe } }: Report): TunnelSample {
  return {
    up: probe?.alive === true,
    ...(wireguard !== undefined && {
      receivedBytes: wireguard.receivedBytes,
      sentBytes: wireguard.sentBytes,
    }),
    ...(wireguard?.handshakeMs !== undefined && { handshake: wireguard.handshakeMs / 1000 }),
    ...(probe?.rttMs !== undefined && { rttSeconds: probe.rttMs / 1000 }),
    ...(probe !== undefined && { loss: probe.lossPercent / 100 }),
    ...(probe?.mtu !== undefined && { mtu: probe.mtu }),
  };
}

/** Measurements of one peer. What is absent is not known. */
export interface TunnelSample {
  up: boolean;
  receivedBytes?: number;
  sentBytes?: number;
  /** Seconds since 1970. */
  handshake?: number;
  rttSeconds?: number;
  /** From 0 to 1. */
  loss?: number;
  /** Bytes. */
  mtu?: number;
}

/** Where measurements are shown; see metrics.ts. */
export interface TunnelMetrics {
  /** By ClusterID. A peer that is not among them any more is forgotten. `by`: whose WireGuard it is; none while there is no link. */
  show(samples: ReadonlyMap<string, TunnelSample>, by?: WireGuardKind): void;
}
