/** What the scheduler makes of a pod's node affinity and tolerations, written down anew from its documentation. */
import type { JsonPatchOperation } from '../../../../src/api/admission.ts';
import type { Pod, Taint } from '../../../../src/api/wire.ts';

export interface TestNode {
  name: string;
  labels: Record<string, string>;
  taints: Taint[];
}

interface Requirement {
  key: string;
  operator: string;
  values?: string[];
}

interface Term {
  matchExpressions?: Requirement[];
  matchFields?: Requirement[];
}

function holds({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    default:
      return value !== undefined && Number(value) < Number(values[0]);
  }
}

/** Terms are alternatives, all of a term must hold, an empty term matches nothing. */
export function wantsNode(pod: Pod, node: TestNode): boolean {
  const terms =
    pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined) return true;
  return terms.some((term) => matches(term, node));
}

const matches = ({ matchExpressions = [], matchFields = [] }: Term, node: TestNode): boolean =>
  matchExpressions.length + matchFields.length > 0 &&
  matchExpressions.every((one) => holds(one, node.labels[one.key])) &&
  matchFields.every((one) => holds(one, node.name));

/** Sum of the weights of the preferred terms that the node matches. */
export const preferenceFor = (pod: Pod, node: TestNode): number =>
  (pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
    .filter(({ preference }) => matches(preference, node))
    .reduce((sum, { weight }) => sum + weight, 0);

const isTolerated = (pod: Pod, taint: Taint): boolean =>
  (pod.spec?.tolerations ?? []).some(({ key = '', operator = 'Equal', value = '', effect = '' }) => {
    const concerns = (key === '' && operator === 'Exists') || key === taint.key;
    return (
      concerns &&
      (effect === '' || effect === taint.effect) &&
      (operator === 'Exists' || value === (taint.value ?? ''))
    );
  });

/** Whether the pod may go there. */
export const fits = (pod: Pod, node: TestNode): boolean =>
  wantsNode(pod, node) && node.taints.every((taint) => isTolerated(pod, taint));

export const toleratesNode = (pod: Pod, node: TestNode): boolean =>
  node.taints.every((taint) => isTolerated(pod, taint));

/** Only `add`, as RFC 6902 says of it; throws where the API server would refuse the patch. */
export function patched(pod: Pod, patch: readonly JsonPatchOperation[]): Pod {
  const result = structuredClone(pod) as unknown as Record<string, unknown>;
  for (const { path, value } of patch) {
    const keys = path
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    let target: unknown = result;
    for (const key of keys) target = (target as Record<string, unknown>)[key];
    if (typeof target !== 'object' || target === null) throw new Error(`nothing is at ${path}`);
    if (Array.isArray(target)) {
      if (last !== '-') throw new Error(`not at the end: ${path}`);
      target.push(structuredClone(value));
    } else (target as Record<string, unknown>)[last] = structuredClone(value);
  }
  return result as unknown as Pod;
}
