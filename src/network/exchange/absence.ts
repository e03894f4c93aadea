import { withCondition } from '../../api/conditions.ts';
import { GATEWAY_LEASE } from '../../api/own-network.ts';
import { leases } from '../../api/resources.ts';
import { type Tunnel, TUNNEL_CONDITIONS, TUNNEL_REASONS, tunnels } from '../../api/tunnel.ts';
import type { Condition, Lease } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import type { InformerOptions } from '../../kube/informer.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { subscribing } from '../../lib/listeners.ts';

export interface AbsenceOptions extends Pick<InformerOptions<Lease>, 'client' | 'clock' | 'log' | 'random'> {
  caches: Caches;
  namespace: string;
  tunnels: Pick<Cache<Tunnel>, 'list' | 'onChange'>;
  metrics?: ControllerMetrics;
}

/** When the Lease has been lapsed or gone for so long, no gateway runs. A rollout or another node takes over sooner. */
export const ABSENT_MS = 60_000;
const KEY = 'gateway';

/** Takes back what the gateway last said of the Tunnels when no gateway runs any more: nobody else would. */
export class GatewayAbsence {
  readonly #options: AbsenceOptions;
  readonly #lease: Cache<Lease>;
  readonly #controller: Controller;
  /** When the Lease last changed, by our own monotonic clock: the clocks of nodes differ. */
  #heardAt: number;

  constructor(options: AbsenceOptions) {
    const { caches, clock, log, random, metrics } = options;
    this.#options = options;
    this.#heardAt = clock.monotonic();
    this.#lease = caches.of(leases, { list: this.#list() });
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

  caches(): Component[] {
    return [this.#lease];
  }

  actors(): Component[] {
    const wiring = subscribing('absence wiring', () => {
      this.#heardAt = this.#options.clock.monotonic();
      const ends = [
        this.#lease.onChange(() => {
          this.#heardAt = this.#options.clock.monotonic();
          this.#controller.add(KEY);
        }),
        this.#options.tunnels.onChange(() => this.#controller.add(KEY)),
      ];
      this.#controller.add(KEY);
      return ends;
    });
    return [wiring, this.#controller];
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult | void> {
    const { client, clock, namespace, log } = this.#options;
    const known = this.#lease.get(`${namespace}/${GATEWAY_LEASE}`);
    const limitMs = (known?.spec?.leaseDurationSeconds ?? 0) * 1000 + ABSENT_MS;
    const leftMs = this.#heardAt + limitMs - clock.monotonic();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    const untrue = [...this.#options.tunnels.list()].filter((tunnel) => absent(tunnel, 0) !== undefined);
    if (untrue.length === 0) return;
    // A watch that stands still would look the same, so the Lease is read once more.
    const { items } = await client.list(leases, { ...this.#list(), signal });
    if (items[0]?.metadata.resourceVersion !== known?.metadata.resourceVersion) {
      this.#heardAt = clock.monotonic();
      return { requeueAfterMs: limitMs };
    }
    log.warn('no gateway runs: its Lease is not renewed', { lease: `${namespace}/${GATEWAY_LEASE}` });
    for (const tunnel of untrue) await this.#tell(tunnel, signal);
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

  #list(): { namespace: string; fieldSelector: string } {
    return { namespace: this.#options.namespace, fieldSelector: `metadata.name=${GATEWAY_LEASE}` };
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
