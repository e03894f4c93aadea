import { withCondition } from '../../api/conditions.ts';
import { GATEWAY_LEASE } from '../../api/own-network.ts';
import { leases } from '../../api/resources.ts';
import { type Tunnel, TUNNEL_CONDITIONS, TUNNEL_REASONS, tunnels } from '../../api/tunnel.ts';
import type { Condition, Lease } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import type { InformerOptions } from '../../kube/informer.ts';
import { ignoring } from '../../lib/errors.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';

export interface AbsenceOptions extends Pick<InformerOptions<Lease>, 'client' | 'clock' | 'log' | 'random'> {
  namespace: string;
  tunnels: Pick<Cache<Tunnel>, 'list' | 'onChange'>;
  metrics?: ControllerMetrics;
}

/**
 * When the Lease has not been renewed for so long, no gateway runs; that of a gateway for which nobody waits is valid for longer, and is to
 * have lapsed for some time. A rollout or another node takes over sooner.
 */
export const ABSENT_MS = 70_000;
const LAPSED_MS = 30_000;
/** How often it is read while there is something to take back: a watch would tell of each renewal. */
export const LOOK_MS = 20_000;
const KEY = 'gateway';

/** Takes back what the gateway last said of the Tunnels when no gateway runs any more: nobody else would. */
export class GatewayAbsence {
  readonly #options: AbsenceOptions;
  readonly #controller: Controller;
  /** As it was read last. */
  #version: string | undefined;
  #durationMs = 0;
  /** Monotonic. */
  #readAt = -Infinity;
  /** When it was first read as it is, by our own monotonic clock: the clocks of nodes differ. */
  #heardAt = -Infinity;

  constructor(options: AbsenceOptions) {
    const { clock, log, random, metrics } = options;
    this.#options = options;
    this.#controller = new Controller({
      clock,
      log,
      ...(random && { random }),
      name: 'absence of the gateway',
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(signal),
      ...(metrics && { metrics }),
    });
  }

  actors(): Component[] {
    const wiring = subscribing('absence wiring', () => {
      const end = this.#options.tunnels.onChange(() => this.#controller.add(KEY));
      this.#controller.add(KEY);
      return [end];
    });
    return [wiring, this.#controller];
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult | void> {
    const { clock, namespace, log } = this.#options;
    const untrue = [...this.#options.tunnels.list()].filter((tunnel) => absent(tunnel, 0) !== undefined);
    if (untrue.length === 0) return;
    const restMs = this.#readAt + LOOK_MS - clock.monotonic();
    if (restMs > 0) return { requeueAfterMs: restMs };
    await this.#read(signal);
    const silentMs = clock.monotonic() - this.#heardAt;
    const leftMs = Math.max(ABSENT_MS, this.#durationMs + LAPSED_MS) - silentMs;
    if (leftMs > 0) return { requeueAfterMs: Math.min(leftMs, LOOK_MS) };
    log.warn('no gateway runs: its Lease is not renewed', { lease: `${namespace}/${GATEWAY_LEASE}` });
    for (const tunnel of untrue) await this.#tell(tunnel, signal);
  }

  /** After a time in which nobody could read it, nobody may have been able to renew it either: it counts as news. */
  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock, namespace } = this.#options;
    const ref = { namespace, name: GATEWAY_LEASE };
    const lease = await client.get(leases, ref, { signal }).catch(ignoring('NotFound'));
    const now = clock.monotonic();
    const version = lease?.metadata.resourceVersion ?? 'gone';
    if (version !== this.#version || now - this.#readAt > 2 * LOOK_MS) this.#heardAt = now;
    if (lease !== undefined) this.#durationMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    this.#version = version;
    this.#readAt = now;
  }

  /** Writes by the version seen: a gateway that has come back meanwhile knows better. */
  async #tell({ metadata, ...rest }: Tunnel, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const { name, uid, resourceVersion } = metadata;
    const conditions = absent({ metadata, ...rest }, clock.now());
    const body = { metadata: { uid, resourceVersion }, status: { conditions } };
    const options = { subresource: 'status', signal };
    await client
      .patch(tunnels, { name }, { type: 'merge', body }, options)
      .catch(ignoring('NotFound', 'Conflict'));
  }
}

/** The Tunnel's conditions where no gateway runs. Undefined: they are so already, or no gateway has written any yet. */
function absent({ status }: Tunnel, now: number): readonly Condition[] | undefined {
  const before = status?.conditions;
  if (before === undefined) return undefined;
  let conditions: readonly Condition[] = before;
  for (const type of [TUNNEL_CONDITIONS.ready, TUNNEL_CONDITIONS.connected]) {
    const generation = before.find((condition) => condition.type === type)?.observedGeneration;
    const wanted = {
      type,
      status: 'Unknown',
      reason: TUNNEL_REASONS.noGateway,
      message:
        'no gateway runs in this cluster, so that nobody knows: kubectl get pods -A -l app.kubernetes.io/name=tributary',
      ...(generation !== undefined && { observedGeneration: generation }),
    } as const;
    conditions = withCondition(conditions, wanted, now);
  }
  return conditions === before ? undefined : conditions;
}
