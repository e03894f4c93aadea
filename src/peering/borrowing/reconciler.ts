import { ADVERTISEMENT_REASONS, advertisements } from '../../api/advertisement.ts';
import { isClusterName } from '../../api/forms.ts';
import { ANNOTATION_NODE_NAME, FINALIZER_PEERING } from '../../api/names.ts';
import { secrets } from '../../api/resources.ts';
import { API_VERSION, type VirtualNode } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { remember } from '../../lib/remember.ts';
import { contractText, signContract } from '../contract.ts';
import type { NamespaceOffloadings, OwnIdentity } from '../ports.ts';
import type { AccessFinder } from './access.ts';
import { type BorrowingCaches, HELD_AFTER_MS } from './caches.ts';
import type { CredentialRenewer } from './credentials.ts';
import { decide } from './decide.ts';
import type { ActiveProvider, BorrowingFacts, Step } from './facts.ts';
import { asConflict, chooseName, recordName } from './names.ts';
import type { Again, AgentSetup, Setup } from './setup.ts';
import { BORROWING_EVENTS, forgeStatus, newsOf, type Progress, type StatusInputs } from './status.ts';
import type { Draining, Haste, Teardown } from './teardown.ts';
import { isOf } from './virtual-node.ts';

interface ReconcilerOptions {
  client: KubeClient;
  caches: BorrowingCaches;
  identity: OwnIdentity;
  facts: (clusterID: string) => BorrowingFacts;
  /** How a provider calls itself, as far as is known. */
  clusterNameOf: (clusterID: string) => string | undefined;
  offloadings?: NamespaceOffloadings;
  setup: Setup;
  teardown: Teardown;
  agents: AgentSetup;
  access: AccessFinder;
  credentials: CredentialRenewer;
  events: EventRecorder;
  clock: Clock;
}

/** At the latest after this, an offer that has ended or an agent that somebody removed is noticed. */
const LOOK_AGAIN_MS = 30_000;
/** Well before this time a deletion has reached the caches. */
const CACHE_LAG_MS = 1000;
const MAX_TOLD = 1024;
/** The API server leaves this out of objects in a list. */
const KIND = { apiVersion: API_VERSION, kind: 'Advertisement' };

/** Takes the next step with one provider. The process may end after any write, so each step may be repeated. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  /** What was told last of what is held, by provider: the last steps are taken more than once. */
  readonly #told = new Map<string, string>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(clusterID: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { facts: gather, client } = this.#options;
    const facts = gather(clusterID);
    const step = decide(facts);
    const { advertisement } = facts;
    if (advertisement !== undefined) {
      const how = { finalizer: FINALIZER_PEERING, signal };
      const held = await addFinalizer(client, advertisements, advertisement, how);
      if (held !== advertisement) return {};
    }
    if (step.kind !== 'end') this.#told.delete(clusterID);
    if (step.kind === 'use') return this.#use(clusterID, step, facts, signal);
    if (step.kind === 'end') return this.#end(clusterID, step, facts, signal);
    if (step.kind === 'keep') await this.#keep(clusterID, facts, signal);
    else if (step.kind === 'sign') await this.#sign(step, facts, signal);
    else await this.#rest(clusterID, step, facts, signal);
    return advertisement === undefined ? {} : { requeueAfterMs: LOOK_AGAIN_MS };
  }

  /** The contract is kept first; it is sent because it is kept. */
  async #sign(
    { contract: terms, assessment }: Extract<Step, { kind: 'sign' }>,
    facts: BorrowingFacts,
    signal: AbortSignal,
  ): Promise<void> {
    const text = contractText(terms);
    const contract = { text, consumerSignature: signContract(this.#options.identity, text) };
    await this.#write(facts, { assessment, contract, goesOn: true }, signal);
  }

  async #rest(
    clusterID: string,
    { assessment, contract }: Extract<Step, { kind: 'rest' }>,
    facts: BorrowingFacts,
    signal: AbortSignal,
  ): Promise<void> {
    const { credentials, access } = this.#options;
    if (contract === undefined) {
      credentials.drop(clusterID);
      await access.drop(clusterID);
    }
    await this.#write(facts, { assessment, contract }, signal);
  }

  /** Keeps the offer as it was checked when it came; what a person has set in the Advertisement stays. */
  async #keep(
    clusterID: string,
    { received, advertisement }: BorrowingFacts,
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#options;
    if (received.offer == null) return;
    const told = this.#options.clusterNameOf(clusterID);
    const clusterName = told !== undefined && isClusterName(told) ? told : undefined;
    const { offer, signature } = received.offer;
    const spec = { clusterID, ...(clusterName !== undefined && { clusterName }), offer, signature };
    if (advertisement !== undefined) {
      const desired = { ...KIND, ...advertisement, spec: { ...advertisement.spec, ...spec } };
      await client.replace(advertisements, desired, { signal });
      return;
    }
    const name = await chooseName(this.#options, { clusterID, clusterName }, signal);
    const metadata = {
      name: clusterID,
      annotations: { [ANNOTATION_NODE_NAME]: name },
      finalizers: [FINALIZER_PEERING],
    };
    const draft = { ...KIND, metadata, spec };
    await client.create(advertisements, draft, { signal }).catch(asConflict(`Advertisement ${clusterID}`));
  }

  async #use(
    clusterID: string,
    step: Extract<Step, { kind: 'use' }>,
    facts: BorrowingFacts,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { caches, client, setup, clock } = this.#options;
    const { advertisement } = facts;
    if (advertisement === undefined) return {};
    if (advertisement.metadata.annotations?.[ANNOTATION_NODE_NAME] === undefined) {
      const { clusterName } = advertisement.spec;
      const name = await chooseName(this.#options, { clusterID, clusterName }, signal);
      await recordName(client, clusterID, name, signal);
      return {};
    }
    const ours = caches.virtualNodesOf(clusterID);
    const provider: ActiveProvider = { clusterID, facts, step, advertisement, ours, signal };
    let last: { progress?: Progress; again: Again } = { again: {} };
    const tell = (progress: Progress, again: Again): void => {
      last = { progress, again };
    };
    const { assessment, contract } = step;
    try {
      await setup.run(provider, tell);
    } catch (error) {
      const progress = withObstacle(error, last.progress);
      if (progress !== undefined) await this.#write(facts, { assessment, contract, progress }, signal);
      throw error;
    }
    await this.#write(facts, { assessment, contract, progress: last.progress }, signal);
    const { inMs = LOOK_AGAIN_MS, atMs = Infinity } = last.again;
    // A little late, so that the clock has passed that time.
    return { requeueAfterMs: Math.min(inMs, LOOK_AGAIN_MS, Math.max(atMs - clock.now() + 1, 1000)) };
  }

  /** Takes down everything that was made because of a provider, in an order in which nothing is forgotten. */
  async #end(
    clusterID: string,
    step: Extract<Step, { kind: 'end' }>,
    facts: BorrowingFacts,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const ours = this.#options.caches.virtualNodesOf(clusterID);
    const recorded = facts.advertisement?.status?.virtualNodes ?? [];
    const names = [...new Set([...ours.map(({ metadata }) => metadata.name), ...recorded])];
    const isLast = ours.length === 0 && facts.advertisement?.metadata.deletionTimestamp !== undefined;
    const draining = await this.#drain(ours, this.#haste(step, facts), signal);
    // Nobody would read the last one.
    if (!isLast) await this.#write(facts, this.#endingStatus(step, names, draining.message), signal);
    if (draining.error !== undefined) throw draining.error;
    if (draining.waitMs !== undefined) return { requeueAfterMs: draining.waitMs };
    const wait = await this.#takeDown(clusterID, names, signal);
    if (wait !== undefined) return { requeueAfterMs: wait };
    this.#tellHeld(clusterID, facts);
    if (step.forget) await this.#forget(facts, signal);
    // Everything that it names is certainly gone.
    else await this.#write(facts, this.#endingStatus(step, []), signal);
    return {};
  }

  #haste({ revoked, untilMs }: Extract<Step, { kind: 'end' }>, { intent }: BorrowingFacts): Haste {
    const { bringsHome, makeAnew } = this.#options.offloadings ?? {};
    const isForced = intent.force === true;
    // Where a person forces it, nothing is waited for.
    const spares = isForced ? undefined : bringsHome;
    return { hasty: revoked || isForced, spares, makeAnew, ...present({ untilMs }) };
  }

  /** An error is returned with its message, so that it is told before it is thrown. */
  async #drain(
    ours: readonly VirtualNode[],
    haste: Haste,
    signal: AbortSignal,
  ): Promise<Partial<Draining> & { error?: Error }> {
    try {
      return (await this.#options.teardown.drain(ours, haste, signal)) ?? {};
    } catch (caught) {
      const error = caught as Error;
      return hasCode(error, 'Conflict', 'Aborted') ? { error } : { error, message: errorMessage(error) };
    }
  }

  /** Removes drained nodes. Undefined when nothing is left, otherwise the milliseconds after which to look again. */
  async #takeDown(
    clusterID: string,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { client, caches, teardown, agents, access, credentials } = this.#options;
    const ours = caches.virtualNodesOf(clusterID);
    for (const one of ours) await teardown.removeVirtualNode(one, signal);
    await agents.remove(clusterID, signal);
    for (const name of names) {
      const current = caches.virtualNodes.get(name);
      if (current === undefined || isOf(current, clusterID))
        await teardown.removeNode(name, clusterID, signal);
    }
    // The Secret goes last: as long as it exists, what is left of the rest is found.
    const secret = caches.secretOf(clusterID);
    if (secret !== undefined) {
      const { name, namespace = '', uid } = secret.metadata;
      await client.delete(secrets, { name, namespace }, { uid, signal }).catch(ignoring('NotFound'));
    }
    credentials.drop(clusterID);
    await access.drop(clusterID);
    return nextLookMs(caches.belongingsOf(clusterID).map(({ endingMs }) => endingMs));
  }

  /** What is left although it is deleted: its finalizers are for people, as nothing here waits for them any more. */
  #tellHeld(clusterID: string, { advertisement }: BorrowingFacts): void {
    const { caches, events } = this.#options;
    const held = caches.belongingsOf(clusterID).map(({ object }) => heldText(object));
    if (held.length === 0 || advertisement === undefined) return;
    const message = `the peering has ended, and what is deleted is still there: ${held.join('; ')}`;
    if (this.#told.get(clusterID) === message) return;
    remember(this.#told, clusterID, message, MAX_TOLD);
    events.event({ ...KIND, ...advertisement }, 'Normal', BORROWING_EVENTS.ending, message);
  }

  #endingStatus(
    { assessment, contract, report }: Extract<Step, { kind: 'end' }>,
    names: string[],
    draining?: string,
  ): Omit<StatusInputs, 'advertisement' | 'nowMs'> {
    const message = draining ?? report.message ?? '';
    const obstacle = { reason: ADVERTISEMENT_REASONS.ending, message };
    const nodes = { complete: false, ready: 0, message };
    return { assessment, contract, progress: { names, nodes, obstacle } };
  }

  async #forget({ advertisement }: BorrowingFacts, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    if (advertisement === undefined) return;
    const { name, uid, deletionTimestamp } = advertisement.metadata;
    if (deletionTimestamp === undefined) {
      // The finalizer holds it until the next look.
      await client.delete(advertisements, { name }, { uid, signal }).catch(ignoring('NotFound'));
      return;
    }
    await removeFinalizer(client, advertisements, advertisement, { finalizer: FINALIZER_PEERING, signal });
  }

  async #write(
    { advertisement, nowMs }: BorrowingFacts,
    inputs: Omit<StatusInputs, 'advertisement' | 'nowMs'>,
    signal: AbortSignal,
  ): Promise<void> {
    if (advertisement === undefined) return;
    const status = forgeStatus({ ...inputs, advertisement, nowMs });
    const object = { ...KIND, ...advertisement };
    const { client, events } = this.#options;
    const writing = replaceStatusIfDiffers(client, advertisements, object, { status, signal });
    if ((await writing.catch(ignoring('NotFound'))) === undefined) return;
    for (const [type, reason, message] of newsOf(object, status)) {
      events.event(object, type, reason, message);
    }
  }
}

/**
 * After how many milliseconds to look again at what is left, by the times since their deletions; undefined: nothing is waited for.
 * The pauses grow with the time that it takes.
 */
function nextLookMs(endingMs: readonly (number | undefined)[]): number | undefined {
  const waited = endingMs.map((ms = 0) => ms).filter((ms) => ms < HELD_AFTER_MS);
  if (waited.length === 0) return undefined;
  const ms = Math.min(...waited);
  return Math.max(CACHE_LAG_MS, Math.min(ms / 4, HELD_AFTER_MS - ms));
}

function heldText({ metadata: { name, finalizers = [] } }: KubeObject): string {
  return finalizers.length === 0 ? name : `${name} is held by ${finalizers.join(', ')}`;
}

/** The progress with the error as obstacle, for people. They need not know of a conflict. */
function withObstacle(error: unknown, progress: Progress | undefined): Progress | undefined {
  if (progress === undefined || hasCode(error, 'Conflict', 'Aborted')) return undefined;
  return { ...progress, obstacle: { reason: ADVERTISEMENT_REASONS.settingUp, message: errorMessage(error) } };
}
