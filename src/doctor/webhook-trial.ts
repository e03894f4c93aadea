import { WEBHOOK_CONFIGURATION } from '../api/admission.ts';
import {
  ANNOTATION_STRATEGY,
  LABEL_NAMESPACE_NAME,
  LABEL_OFFLOAD,
  TAINT_VIRTUAL_NODE,
} from '../api/names.ts';
import { pods } from '../api/resources.ts';
import type { Draft, KubeObject, Pod } from '../api/wire.ts';
import { collect } from '../kube/body.ts';
import type { KubeClient } from '../kube/client.ts';
import { collectionPath } from '../kube/paths.ts';
import type { Clock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { errorMessage } from '../lib/errors.ts';
import { itemsOf, type Lists, type WebhookTrial } from './facts.ts';

interface Trial {
  client: KubeClient;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * It tolerates virtual nodes: the webhook writes nothing into a pod that stays on real nodes without its doing, as all do where the
 * strategy is Local, and while `whenAway` keeps new pods at home.
 */
export const TRIAL_POD: Draft<Pod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'tributary-doctor-' },
  spec: {
    containers: [{ name: 'main', image: 'example/none' }],
    tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
  },
};

/** API servers give a webhook up to 10 s. */
const PATIENCE_MS = 15_000;
const MOST_BYTES = 1024 * 1024;

/**
 * Sends a pod to an offloaded namespace with `dryRun=All`: the API server asks the webhook, and nothing is stored. It is the only way
 * to know whether that server, and not this machine, reaches it.
 */
export async function tryOutWebhook(
  { client, clock, signal }: Trial,
  lists: Lists,
): Promise<WebhookTrial | undefined> {
  const namespace = offloadedNamespace(lists);
  if (namespace === undefined) return undefined;
  using deadline = startDeadline(clock, PATIENCE_MS, 'create a pod for a trial', signal);
  try {
    const answer = await client.raw({
      method: 'POST',
      path: `${collectionPath(pods, namespace)}?dryRun=All`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(TRIAL_POD),
      signal: deadline.signal,
    });
    const text = (await collect(answer.body, { maxBytes: MOST_BYTES, excess: 'throw' })).toString();
    return {
      namespace,
      ...judged(answer.status, JSON.parse(text) as Partial<KubeObject> & { message?: string }),
    };
  } catch (error) {
    return { namespace, error: errorMessage(error) };
  }
}

/** With `failurePolicy: Ignore` a pod is let in although the webhook was not reached; then what the webhook writes is missing. */
function judged(status: number, answer: Partial<KubeObject> & { message?: string }): { error?: string } {
  if (status !== 201) return { error: answer.message ?? `HTTP ${status}` };
  if (answer.metadata?.annotations?.[ANNOTATION_STRATEGY] !== undefined) return {};
  return {
    error: 'failed calling webhook "offloading.tributary.dev": the pod was let in without being looked at',
  };
}

function offloadedNamespace({ webhooks, namespaces }: Lists): string | undefined {
  const configuration = itemsOf(webhooks).find(({ metadata }) => metadata.name === WEBHOOK_CONFIGURATION);
  const expressions = (configuration?.webhooks ?? []).flatMap(
    ({ namespaceSelector }) => namespaceSelector?.matchExpressions ?? [],
  );
  const named = expressions
    .filter(({ key, operator }) => key === LABEL_NAMESPACE_NAME && operator === 'In')
    .flatMap(({ values }) => values ?? []);
  const known = itemsOf(namespaces).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const labelled = known.filter(({ metadata }) => metadata.labels?.[LABEL_OFFLOAD] === 'true');
  const wanted = [...named, ...labelled.map(({ metadata }) => metadata.name)];
  return configuration === undefined
    ? undefined
    : wanted.find((name) => known.some(({ metadata }) => metadata.name === name));
}
