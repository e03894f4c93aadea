/**
 * What every pod gets that is sent to this foreign cluster (decision 76); what the pod itself says comes first. The schema of the
 * VirtualNode permits keys below our domain, which nobody adds. Pure.
 */
import { isOwnKey } from '../../api/names.ts';
import type { PodAdditions } from '../../api/pod-additions.ts';
import type { Pod, PodSpec, Toleration } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import { travellingAnnotations, travellingLabels, travels } from './applied.ts';

const foreign = (entries: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !isOwnKey(key)));

export const remoteLabels = (home: Pod, additions: PodAdditions = {}): Record<string, string> => ({
  ...foreign(additions.labels),
  ...travellingLabels(home),
});

/** Whether a pod over there may bear that label otherwise than at home: it stays at home, or is added. */
export const isOther = (labelKey: string, { labels = {} }: PodAdditions = {}): boolean =>
  !travels(labelKey) || Object.hasOwn(labels, labelKey);

export const remoteAnnotations = (home: Pod, additions: PodAdditions = {}): Record<string, string> => ({
  ...foreign(additions.annotations),
  ...travellingAnnotations(home),
});

/** For entries that home has taken away: what was added beneath them, else null, which removes one. */
export const instead = (
  keys: readonly string[],
  additions: Readonly<Record<string, string>> | undefined,
): Record<string, string | null> => {
  const beneath = foreign(additions);
  return Object.fromEntries(keys.map((key) => [key, beneath[key] ?? null]));
};

export const remoteTolerations = (
  own: readonly Toleration[],
  { tolerations = [] }: PodAdditions = {},
): Toleration[] => [
  ...own,
  ...tolerations.filter((added) => !own.some((toleration) => deepEqual(toleration, added))),
];

/** The pod's own node selector speaks of nodes at home, and does not travel. */
export function addedSpec(
  spec: PodSpec,
  { nodeSelector = {}, ...added }: PodAdditions = {},
): Pick<PodSpec, 'nodeSelector' | 'runtimeClassName'> {
  const runtimeClassName = spec.runtimeClassName ?? added.runtimeClassName;
  return {
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
    ...present({ runtimeClassName }),
  };
}
