/** Objects that tests create at home, all bound for the virtual node. */
import type { ContainerStatus, Pod, PodSpec } from '../../../src/api/wire.ts';

export const BUSYBOX = 'lab.local/busybox:1';
export const NODE = 'foreign';

/** Prints a line, then ends at once when told to. */
export const SLEEP = 'trap "echo stopping; exit 0" TERM; echo started; while :; do sleep 1 & wait $!; done';

/** Answers on port 8080. */
export const SERVE =
  'mkdir -p /tmp/www && echo served > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www';

interface PodExtras {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<PodSpec>;
  /** Merged into the one container. */
  readonly container?: Record<string, unknown>;
}

/** Onto the virtual node, and nowhere else. */
const PLACEMENT = {
  nodeSelector: { 'tributary.dev/virtual-node': NODE },
  tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
};

export function podSpec(script: string, { spec, container }: PodExtras = {}): PodSpec {
  return {
    ...PLACEMENT,
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: 'main',
        image: BUSYBOX,
        command: ['sh', '-c', script],
        resources: { requests: { cpu: '5m', memory: '8Mi' } },
        ...container,
      },
    ],
    ...spec,
  };
}

/** A pod of one busybox container that runs a script. */
export function aPod(name: string, script: string = SLEEP, extras: PodExtras = {}): object {
  const { labels, annotations } = extras;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: podSpec(script, extras),
  };
}

export function aDeployment(
  name: string,
  replicas: number,
  script: string = SLEEP,
  extras: PodExtras & { strategy?: object } = {},
): object {
  const { labels, strategy } = extras;
  return aDeploymentOf(name, replicas, podSpec(script, extras), {
    ...(labels && { labels }),
    ...(strategy && { strategy }),
  });
}

/** Of any pod; it selects them by `app`, its own name. */
export function aDeploymentOf(
  name: string,
  replicas: number,
  pod: object,
  { labels, ...spec }: { labels?: Record<string, string>; strategy?: object } = {},
): object {
  const selected = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: selected },
      ...spec,
      template: { metadata: { labels: { ...selected, ...labels } }, spec: pod },
    },
  };
}

export const conditionOf = (
  pod: Pod | undefined,
  type: string,
): NonNullable<NonNullable<Pod['status']>['conditions']>[number] | undefined =>
  pod?.status?.conditions?.find((condition) => condition.type === type);

export const isReady = (pod: Pod): boolean => conditionOf(pod, 'Ready')?.status === 'True';

export const statusOf = (pod: Pod | undefined, container = 'main'): ContainerStatus | undefined =>
  pod?.status?.containerStatuses?.find(({ name }) => name === container);

export const environment = (variables: Readonly<Record<string, unknown>>): object[] =>
  Object.entries(variables).map(([name, value]) =>
    typeof value === 'string' ? { name, value } : { name, valueFrom: value },
  );
