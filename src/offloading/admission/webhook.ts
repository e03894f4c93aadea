import {
  type Admission,
  type MutatingWebhook,
  mutatingWebhookConfigurations,
  type Question,
  WEBHOOK_CONFIGURATION,
  WEBHOOK_PATH,
} from '../../api/admission.ts';
import type { Forwarding } from '../../api/cluster-mode.ts';
import { isClusterNamespace, isClusterNamespaceIn } from '../../api/cluster-namespaces.ts';
import { LABEL_NAMESPACE_NAME, LABEL_OFFLOAD, LABEL_PEER, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import {
  type NamespaceOffloading,
  POD_STRATEGIES,
  type PodStrategy,
} from '../../api/namespace-offloading.ts';
import {
  type AdmissionPart,
  askedAbout,
  webhookAt,
  type WebhookPlace,
} from '../../kube/webhook-configuration.ts';
import type { Clock } from '../../lib/clock.ts';
import type { AdmittedPods } from '../admitted/admitted-pods.ts';
import type { Offloading } from '../offloading.ts';
import { LABEL_STRATEGIES, type SelectedNamespaces } from '../short-form.ts';
import { admit } from './decide.ts';
import { nodeFacts } from './node-facts.ts';
import { expressionsOf } from './strategy.ts';

/** The questions of API servers about pods of offloaded namespaces, and where they are told to ask. */

type Offloadings = Pick<
  Offloading,
  'offloadingOf' | 'offloadingByShortForm' | 'all' | 'isOpen' | 'selectedBy' | 'tether' | 'onChange'
>;

interface OffloadingAdmissionOptions {
  clock: Clock;
  systemNamespace: string;
  /** What the operator offloads by a selector of namespaces. */
  selected: SelectedNamespaces | undefined;
  admitted: Pick<AdmittedPods, 'letIn'>;
}

/**
 * Pods of offloaded namespaces. There is a path for each strategy of the short form: so it is known of a namespace that our
 * caches do not have yet.
 */
export function offloadingAdmission(
  offloadings: Offloadings,
  { clock, systemNamespace, selected: selectedNamespaces, admitted }: OffloadingAdmissionOptions,
): AdmissionPart {
  const decideBy =
    (offloadingOf: (namespace: string) => NamespaceOffloading | undefined) =>
    ({ pod, namespace, about, isDryRun }: Question): Admission => {
      if (about !== 'Create') return { patch: [], warnings: [] };
      const offloading = offloadingOf(namespace);
      const selected = offloading === undefined ? [] : offloadings.selectedBy(offloading);
      const facts = nodeFacts(offloading, selected, clock.now());
      const { toTell, ...admission } = admit(pod, { offloading, ...facts, isOpen: offloadings.isOpen() });
      if (toTell !== undefined && !isDryRun) admitted.letIn(namespace, toTell);
      return admission;
    };
  return {
    components: [],
    hooks: [
      { path: WEBHOOK_PATH, decide: decideBy((namespace) => offloadings.offloadingOf(namespace)) },
      ...POD_STRATEGIES.map((strategy) => ({
        path: shortFormPath(strategy),
        decide: decideBy((namespace) => offloadings.offloadingByShortForm(namespace, strategy)),
      })),
    ],
    configurations: (place) => [
      {
        type: mutatingWebhookConfigurations,
        name: WEBHOOK_CONFIGURATION,
        wanted: () =>
          forgeWebhooks({
            namespaces: byStrategy(offloadings.all(), systemNamespace),
            systemNamespace,
            selected: selectedNow(offloadings.tether(), selectedNamespaces),
            isOpen: offloadings.isOpen(),
            place,
          }),
      },
    ],
    onChange: (listener) => offloadings.onChange(listener),
  };
}

/** A tether speaks of all namespaces of users, whatever the operator selects. */
const selectedNow = (
  tether: Forwarding | undefined,
  selected: SelectedNamespaces | undefined,
): SelectedNamespaces | undefined =>
  tether === undefined ? selected : { selector: {}, podStrategy: tether.podStrategy };

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

interface WebhookFacts {
  /** Of each strategy; no order, none twice. */
  namespaces: Readonly<Record<PodStrategy, readonly string[]>>;
  systemNamespace: string;
  selected: SelectedNamespaces | undefined;
  /** Some virtual node takes pods that do not tolerate its taint: those that are to stay home need an affinity. */
  isOpen: boolean;
  /** Where API servers come to a path. */
  place: (path: string) => WebhookPlace;
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
  failurePolicy: 'Ignore' | 'Fail';
  /** Whether a pod that does not fulfil it is sure to be placed as it should be. */
  condition: { name: string; expression: string };
}

const GOES_OUT = { name: 'not-kept-home', expression: `!(${IS_KEPT_HOME}) || (${TOLERATES})` };

const WEBHOOKS: Readonly<Record<PodStrategy, StrategyWebhook>> = {
  Local: { failurePolicy: 'Ignore', condition: { name: 'tolerates-virtual-nodes', expression: TOLERATES } },
  LocalAndRemote: { failurePolicy: 'Ignore', condition: GOES_OUT },
  // A pod that must not run on real nodes is not admitted while the webhook does not answer.
  Remote: { failurePolicy: 'Fail', condition: GOES_OUT },
};

const conditionsOf = (strategy: PodStrategy, isOpen: boolean): typeof CONDITIONS =>
  isOpen ? CONDITIONS : [...CONDITIONS, WEBHOOKS[strategy].condition];

const SLUGS: Readonly<Record<PodStrategy, string>> = {
  Local: 'local',
  LocalAndRemote: 'local-and-remote',
  Remote: 'remote',
};
const shortFormPath = (strategy: PodStrategy): string => `${WEBHOOK_PATH}/${SLUGS[strategy]}`;

type Expressions = NonNullable<NonNullable<MutatingWebhook['namespaceSelector']>['matchExpressions']>;

/** Nobody sets this label but the API server. */
/** Whatever their labels say, they never leave the cluster; their names cannot be listed. */
const NOT_OF_THE_CLUSTER = {
  name: 'not-of-the-cluster',
  expression: `!${isClusterNamespaceIn('request.namespace')}`,
};

/**
 * Pure. For each strategy, one webhook for the namespaces that have it by their objects, and one for those whose label says
 * so; one more for what the operator selects. Labels are matched by the API server, so a pod that is made a moment after its
 * namespace goes where it should. With all fields that an API server would fill in, so that they can be compared.
 */
export function forgeWebhooks({
  namespaces,
  systemNamespace,
  selected,
  isOpen,
  place,
}: WebhookFacts): MutatingWebhook[] {
  const named = Object.values(namespaces).flat();
  const byLabels = (
    strategy: PodStrategy,
    origin: string,
    matchExpressions: Expressions,
  ): MutatingWebhook => ({
    ...forgeWebhook(strategy, origin, place(shortFormPath(strategy))),
    matchConditions: [NOT_OF_THE_CLUSTER, ...conditionsOf(strategy, isOpen)],
    namespaceSelector: {
      matchExpressions: [
        ...matchExpressions,
        // What a peer brings is not lent on.
        { key: LABEL_PEER, operator: 'DoesNotExist' },
        // Their objects say more than their labels.
        { key: LABEL_NAMESPACE_NAME, operator: 'NotIn', values: [systemNamespace, ...named].toSorted() },
      ],
    },
  });
  return POD_STRATEGIES.flatMap((strategy) => {
    const values = namespaces[strategy].toSorted();
    const labels = Object.keys(LABEL_STRATEGIES).filter((label) => LABEL_STRATEGIES[label] === strategy);
    return [
      ...(values.length === 0
        ? []
        : [
            {
              ...forgeWebhook(strategy, undefined, place(WEBHOOK_PATH)),
              matchConditions: conditionsOf(strategy, isOpen),
              // By name: whoever may edit a namespace sets its labels.
              namespaceSelector: {
                matchExpressions: [{ key: LABEL_NAMESPACE_NAME, operator: 'In', values }],
              },
            },
          ]),
      byLabels(strategy, 'label', [{ key: LABEL_OFFLOAD, operator: 'In', values: labels }]),
      ...(selected?.podStrategy === strategy
        ? [
            byLabels(strategy, 'selector', [
              { key: LABEL_OFFLOAD, operator: 'DoesNotExist' },
              ...expressionsOf(selected.selector),
            ]),
          ]
        : []),
    ];
  });
}

function forgeWebhook(
  strategy: PodStrategy,
  origin: string | undefined,
  place: WebhookPlace,
): MutatingWebhook {
  return {
    ...webhookAt(place),
    name: [SLUGS[strategy], origin, 'offloading.tributary.dev']
      .filter((part) => part !== undefined)
      .join('.'),
    failurePolicy: WEBHOOKS[strategy].failurePolicy,
    reinvocationPolicy: 'IfNeeded',
    rules: [askedAbout('CREATE', 'pods')],
    sideEffects: 'None',
    timeoutSeconds: TIMEOUT_SECONDS,
  };
}
