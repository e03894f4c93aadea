/** How long a pod stays on a node that is not ready, or does not answer: tolerations that every pod has. Pure. */
import { ANNOTATION_WHEN_AWAY } from './names.ts';
import { NODE_LIFE_TAINTS } from './taints.ts';
import type { Pod, Toleration } from './wire.ts';

/** What Kubernetes' admission DefaultTolerationSeconds adds where a pod says nothing; its own default. */
export const DEFAULT_STAY_SECONDS = 300;

const ofNodeLife = (key: string, tolerationSeconds: number | undefined): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds !== undefined && { tolerationSeconds }),
});

const isOfNodeLife = ({ key = '', operator, effect, value }: Toleration): boolean =>
  NODE_LIFE_TAINTS.includes(key) && operator === 'Exists' && effect === 'NoExecute' && (value ?? '') === '';

/** Whether that admission has added it: it adds it again where it is wanted. */
export const isDefaultStay = (toleration: Toleration): boolean =>
  isOfNodeLife(toleration) && toleration.tolerationSeconds === DEFAULT_STAY_SECONDS;

/** Whether this program has said how long the pod stays. */
export const isStaySet = ({ metadata }: Pick<Pod, 'metadata'>): boolean =>
  metadata.annotations?.[ANNOTATION_WHEN_AWAY] !== undefined;

/** Whether the pod's maker has said something else than the default, so that it is not ours to change. */
export const hasOwnStay = (pod: Pick<Pod, 'metadata' | 'spec'>): boolean =>
  !isStaySet(pod) &&
  (pod.spec?.tolerations ?? []).some((one) => {
    const { key = '', effect = '' } = one;
    const concerns = key === '' || NODE_LIFE_TAINTS.includes(key);
    return concerns && ['', 'NoExecute'].includes(effect) && !isDefaultStay(one);
  });

/** The pod's tolerations with that stay. Others keep their place, as an API server demands. `seconds` undefined: without end. */
export function withStay(pod: Pick<Pod, 'spec'>, seconds: number | undefined): Toleration[] {
  const given = pod.spec?.tolerations ?? [];
  const changed = given.map((one) => (isOfNodeLife(one) ? ofNodeLife(one.key ?? '', seconds) : one));
  const absent = NODE_LIFE_TAINTS.filter((key) => !given.some((one) => isOfNodeLife(one) && one.key === key));
  return [...changed, ...absent.map((key) => ofNodeLife(key, seconds))];
}

/** Its tolerations as its maker has them: what this program has said speaks of the virtual node, and of no other. */
export const ownTolerations = (pod: Pick<Pod, 'metadata' | 'spec'>): Toleration[] =>
  isStaySet(pod) ? withStay(pod, DEFAULT_STAY_SECONDS) : (pod.spec?.tolerations ?? []);
