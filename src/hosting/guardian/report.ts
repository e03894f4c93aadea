import { withCondition, type WantedCondition } from '../../api/conditions.ts';
import {
  PEERING_REQUEST_CONDITIONS,
  PEERING_REQUEST_REASONS as REASONS,
  type PeeringRequestReason,
  peeringRequests,
  type PeeringRequest,
} from '../../api/peering-request.ts';
import type { KubeObject } from '../../api/wire.ts';
import { ignoring } from '../../lib/errors.ts';
import type { HostingParts } from '../parts.ts';
import type { WatchSummary } from './tenant-watch.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };
const REQUEST = { apiVersion: 'tributary.dev/v1alpha1', kind: 'PeeringRequest' };
type Subject = Required<KubeObject>;

const TYPE = PEERING_REQUEST_CONDITIONS.home;
type HomeCondition = WantedCondition<string, PeeringRequestReason>;

/** The condition HomePresent. `summaries` is undefined where the home is there. */
export function homeCondition(summaries: readonly WatchSummary[] | undefined): HomeCondition {
  if (summaries === undefined) {
    return { type: TYPE, status: 'True', reason: REASONS.ok, message: 'the home renews its Lease' };
  }
  const since = summaries.map((it) => it.since).toSorted()[0] ?? '';
  const pods = sum(summaries.map((it) => it.pods));
  const recreated = sum(summaries.map((it) => it.recreated));
  const refusal = summaries.find((it) => it.refusal !== undefined)?.refusal;
  const gap = summaries.find((it) => it.gap !== undefined)?.gap;
  const sinceText = since === '' ? '' : ` since ${since}`;
  if (summaries.length > 0 && summaries.every(({ isGone }) => isGone)) {
    const message = `nothing was heard from the home${sinceText}; its pods were ended, as was agreed (${pods} are left)`;
    return { type: TYPE, status: 'False', reason: REASONS.homeGone, message };
  }
  const message =
    `nothing was heard from the home${sinceText}; ${pods} pods are looked after, ` +
    `pods made anew: ${recreated}${refusal === undefined ? '' : `; not made anew: ${refusal}`}` +
    (gap === undefined ? '' : `; ${gap}`);
  return { type: TYPE, status: 'False', reason: REASONS.homeAway, message };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

type ReporterOptions = Pick<HostingParts, 'client' | 'clock' | 'events' | 'log'>;

/** Reports whether a home is there: on its PeeringRequest, or in events of the namespaces for a tenant that people made. */
export class Reporter {
  readonly #options: ReporterOptions;
  /** By peer, what was reported last. */
  readonly #said = new Map<string, string>();

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Since when the home is away, as an earlier guardian has reported. */
  async awaySince(peer: string, signal: AbortSignal): Promise<string | undefined> {
    const condition = conditionOf(await this.#request(peer, signal));
    return condition?.status === 'False' ? condition.lastTransitionTime : undefined;
  }

  async say(
    peer: string,
    wanted: HomeCondition,
    { tenants, signal }: { tenants: readonly KubeObject[]; signal: AbortSignal },
  ): Promise<void> {
    const text = `${wanted.reason} ${wanted.message}`;
    if (this.#said.get(peer) === text) return;
    const request = await this.#request(peer, signal);
    if (request !== undefined) await this.#write(request, wanted, signal);
    if (request === undefined || conditionOf(request)?.reason !== wanted.reason) {
      const about =
        request === undefined ? tenants.map((it) => ({ ...NAMESPACE, ...it })) : [{ ...REQUEST, ...request }];
      this.#tell(peer, wanted, about);
    }
    this.#said.set(peer, text);
  }

  forget(peer: string): void {
    this.#said.delete(peer);
  }

  /** Writes by version, because lending writes the other conditions. */
  async #write(request: PeeringRequest, wanted: WantedCondition, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const { uid, resourceVersion, generation } = request.metadata;
    const before = request.status?.conditions ?? [];
    const full = { ...wanted, ...(generation !== undefined && { observedGeneration: generation }) };
    const conditions = withCondition(before, full, clock.now());
    if (conditions === before) return;
    const body = { metadata: { uid, resourceVersion }, status: { conditions } };
    const { name } = request.metadata;
    const options = { subresource: 'status', signal };
    await client.patch(peeringRequests, { name }, { type: 'merge', body }, options);
  }

  /** Only changes; that a home is there is not reported before it was away. */
  #tell(peer: string, { reason, status, message }: HomeCondition, subjects: readonly Subject[]): void {
    const before = this.#said.get(peer);
    if (before?.startsWith(`${reason} `) === true || (before === undefined && status === 'True')) return;
    const type = status === 'True' ? 'Normal' : 'Warning';
    const name = status === 'True' ? 'HomePresent' : reason;
    for (const { apiVersion, kind, metadata } of subjects) {
      const subject = { apiVersion, kind, metadata: { name: metadata.name, uid: metadata.uid } };
      this.#options.events.event(subject, type, name, message);
    }
    this.#options.log.info('the presence of a home has changed', { peer, reason });
  }

  async #request(name: string, signal: AbortSignal): Promise<PeeringRequest | undefined> {
    return this.#options.client.get(peeringRequests, { name }, { signal }).catch(ignoring('NotFound'));
  }
}

const conditionOf = (
  request: PeeringRequest | undefined,
): { status: string; reason: string; lastTransitionTime: string } | undefined =>
  request?.status?.conditions?.find(({ type }) => type === TYPE);
