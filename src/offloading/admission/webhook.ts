import {
  type Admission,
  type MutatingWebhook,
  mutatingWebhookConfigurations,
  type Question,
  WEBHOOK_CONFIGURATION,
  WEBHOOK_PATH,
} from '../../api/admission.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { LABEL_OFFLOAD, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import type { NamespaceOffloading, PodStrategy } from '../../api/namespace-offloading.ts';
import { nodeLabelsOf } from '../../api/node-labels.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import {
  type AdmissionPart,
  askedAbout,
  webhookAt,
  type WebhookPlace,
} from '../../kube/webhook-configuration.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SelectedNode } from './avoid.ts';
import type { Offloading } from '../offloading.ts';
import { admit } from './decide.ts';

/** The questions of API servers about pods of offloaded namespaces, and where they are told to ask. */

type Offloadings = Pick<Offloading, 'offloadingOf' | 'all' | 'selectedBy' | 'onChange'>;

/** Pods of offloaded namespaces. */
export function offloadingAdmission(
  offloadings: Offloadings,
  { clock, systemNamespace }: { clock: Clock; systemNamespace: string },
): AdmissionPart {
  const decide = ({ pod, namespace, about }: Question): Admission => {
    if (about !== 'Create') return { patch: [], warnings: [] };
    const offloading = offloadings.offloadingOf(namespace);
    const selected = offloading === undefined ? [] : offloadings.selectedBy(offloading);
    const failedNodes = failedNodesOf(offloading, selected);
    return admit(pod, { offloading, failedNodes, selected: selected.map(placeOf), nowMs: clock.now() });
  };
  return {
    components: [],
    hooks: [{ path: WEBHOOK_PATH, decide }],
    configurations: (place) => [
      {
        type: mutatingWebhookConfigurations,
        name: WEBHOOK_CONFIGURATION,
        wanted: () =>
          forgeWebhooks({
            namespaces: byStrategy(offloadings.all(), systemNamespace),
            ...place(WEBHOOK_PATH),
          }),
      },
    ],
    onChange: (listener) => offloadings.onChange(listener),
  };
}

const placeOf = (virtualNode: VirtualNode): SelectedNode => ({
  name: virtualNode.metadata.name,
  labels: nodeLabelsOf(virtualNode),
});

/**
 * Pure. What is being removed takes no new pods abroad. The cluster's own parts are never held up: they could not bring
 * back the one whose answer they wait for.
 */
export function byStrategy(
  offloadings: readonly NamespaceOffloading[],
  systemNamespace: string,
): Record<PodStrategy, string[]> {
  const found: Record<PodStrategy, string[]> = { Local: [], LocalAndRemote: [], Remote: [] };
  for (const { metadata, spec } of offloadings) {
    const { namespace = '', deletionTimestamp } = metadata;
    const isSystem = isClusterNamespace(namespace, systemNamespace);
    if (deletionTimestamp !== undefined || isSystem || namespace === '') continue;
    found[spec.podStrategy ?? 'LocalAndRemote'].push(namespace);
  }
  return found;
}

/** Pure: virtual nodes that have failed to take the namespace, or are about to lose it. */
export function failedNodesOf(
  offloading: NamespaceOffloading | undefined,
  selected: readonly VirtualNode[],
): string[] {
  const names = new Set(selected.map(({ metadata }) => metadata.name));
  return (offloading?.status?.clusters ?? []).flatMap(({ phase, virtualNodes }) =>
    phase === 'Failed' || phase === 'Ending' ? virtualNodes : virtualNodes.filter((name) => !names.has(name)),
  );
}

interface WebhookFacts extends WebhookPlace {
  /** Of each strategy; no order, none twice. */
  namespaces: Readonly<Record<PodStrategy, readonly string[]>>;
}

/** How long an API server waits for an answer, and so what an outage of the webhook costs each pod of these namespaces. */
const TIMEOUT_SECONDS = 2;

/** Whether a pod may be scheduled to a virtual node without the webhook. `admit` looks closer. */
const TOLERATES: string =
  'has(object.spec.tolerations) && object.spec.tolerations.exists(t, ' +
  `!has(t.key) || t.key == '' || t.key == '${TAINT_VIRTUAL_NODE}')`;
const IS_KEPT_HOME: string =
  `has(object.metadata.labels) && '${LABEL_OFFLOAD}' in object.metadata.labels && ` +
  `object.metadata.labels['${LABEL_OFFLOAD}'] == 'false'`;

/** Excludes pods that the webhook would leave alone anyway: they are never held up, whatever the failure policy. */
const CONDITIONS = [
  { name: 'not-bound', expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''" },
  {
    name: 'not-of-a-daemon-set',
    expression:
      '!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, ' +
      "o.kind == 'DaemonSet' && has(o.controller) && o.controller)",
  },
];

interface StrategyWebhook {
  name: string;
  failurePolicy: 'Ignore' | 'Fail';
  condition: { name: string; expression: string };
}

const GOES_OUT = { name: 'not-kept-home', expression: `!(${IS_KEPT_HOME}) || (${TOLERATES})` };

const WEBHOOKS: Readonly<Record<PodStrategy, StrategyWebhook>> = {
  Local: {
    name: 'local.offloading.tributary.dev',
    failurePolicy: 'Ignore',
    condition: { name: 'tolerates-virtual-nodes', expression: TOLERATES },
  },
  LocalAndRemote: {
    name: 'local-and-remote.offloading.tributary.dev',
    failurePolicy: 'Ignore',
    condition: GOES_OUT,
  },
  // A pod that must not run on real nodes is not admitted while the webhook does not answer.
  Remote: { name: 'remote.offloading.tributary.dev', failurePolicy: 'Fail', condition: GOES_OUT },
};

/**
 * Pure: one webhook for each strategy that a namespace has; none where no namespace is offloaded. With all fields that an API
 * server would fill in, so that they can be compared.
 */
export function forgeWebhooks({ namespaces, ...place }: WebhookFacts): MutatingWebhook[] {
  return (['Local', 'LocalAndRemote', 'Remote'] as const).flatMap((strategy) => {
    const values = namespaces[strategy].toSorted();
    if (values.length === 0) return [];
    const { name, failurePolicy, condition } = WEBHOOKS[strategy];
    return [
      {
        ...webhookAt(place),
        name,
        failurePolicy,
        matchConditions: [...CONDITIONS, condition],
        // By name: whoever may edit a namespace sets its labels, but nobody sets `kubernetes.io/metadata.name`.
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
        },
        reinvocationPolicy: 'IfNeeded',
        rules: [askedAbout('CREATE', 'pods')],
        sideEffects: 'None',
        timeoutSeconds: TIMEOUT_SECONDS,
      },
    ];
  });
}
