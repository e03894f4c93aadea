/** Classes of the cluster that lends. */

const named = (apiVersion: string, kind: string, name: string, more: object): object => ({
  apiVersion,
  kind,
  metadata: { name },
  ...more,
});

/** Policies lend two of them, also the one that must not be lent. */
const PRIORITIES = { quiet: 'Never', other: 'Never', loud: 'PreemptLowerPriority' };

export const CLASSES: readonly object[] = [
  ...['lent', 'fast'].map((name) =>
    named('storage.k8s.io/v1', 'StorageClass', name, { provisioner: 'example.com/none' }),
  ),
  ...Object.entries(PRIORITIES).map(([name, preemptionPolicy]) =>
    named('scheduling.k8s.io/v1', 'PriorityClass', name, { value: 1000, preemptionPolicy }),
  ),
  ...['hardened', 'loose'].map((name) => named('node.k8s.io/v1', 'RuntimeClass', name, { handler: name })),
];
