import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import { aPod, HOME_POD_UID, MARKS } from './row.ts';

const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

const containers = (prefix: string): object[] =>
  named(prefix, 64).map((name) => ({
    name,
    image: 'x'.repeat(1024),
    env: named('V', 100).map((variable) => ({ name: variable, value: '' })),
    ports: named('p', 50).map((_, index) => ({ containerPort: index + 1 })),
    resources: { requests: { cpu: '1m', memory: '1Mi' } },
    securityContext: { capabilities: { add: ['CHOWN', 'KILL', 'SYS_CHROOT'] } },
  }));

const near = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'x' } } };
const rules = {
  requiredDuringSchedulingIgnoredDuringExecution: Array.from({ length: 32 }, () => near),
  preferredDuringSchedulingIgnoredDuringExecution: Array.from({ length: 32 }, () => ({
    weight: 1,
    podAffinityTerm: near,
  })),
};

/** As many of everything as the bounds of guests' pods permit, in an object that an API server still takes. */
export function largestPod(name: string): object {
  const sources = named('s', 50).map((source) => ({ configMap: { name: source } }));
  const spec = {
    affinity: { podAffinity: rules, podAntiAffinity: rules },
    containers: containers('main'),
    initContainers: containers('init'),
    volumes: named('v', 250).map((volume) => ({ name: volume, projected: { sources } })),
    // The API server adds one about nodes that are unreachable.
    tolerations: named('t', 63).map((_, index) => ({
      key: 'node.kubernetes.io/not-ready',
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: index,
    })),
  };
  const notes = Object.fromEntries(named('example.com/note', 120).map((key) => [key, 'x']));
  const labels = { ...MARKS, [LABEL_HOME_UID]: HOME_POD_UID, ...notes };
  return aPod(name, spec, { metadata: { name, labels, annotations: notes } });
}
