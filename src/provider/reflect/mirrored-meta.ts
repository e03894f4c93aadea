import { ANNOTATION_HOME_NAMESPACE, LABEL_MANAGED_BY } from '../../api/names.ts';
import type { DraftMeta, KubeObject, ObjectMeta } from '../../api/wire.ts';
import type { MirrorContext } from './mirrored-kind.ts';

/** A reflection of somebody else's object; it is not sent on, or two clusters could reflect each other for ever. */
export const isReflection = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[LABEL_MANAGED_BY] !== undefined;

/** Labels of ours speak of the cluster that they were set in. */
export const travellingLabels = (labels: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !/^([^/]*\.)?tributary\.dev\//u.test(key)));

/** What Kubernetes, kubectl and we keep on an object speaks of the cluster that it was set in. */
const MANAGED = /^([^/]*\.)?(tributary\.dev|kubernetes\.io|k8s\.io)\//u;
/** People's own, by the recommendation of Kubernetes. */
const RECOMMENDED = 'app.kubernetes.io/';

/** Labels or annotations of an object that this program knows nothing of. */
export const unmanaged = (marks: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(marks).filter(([key]) => key.startsWith(RECOMMENDED) || !MANAGED.test(key)),
  );

export function mirroredMeta(
  name: string,
  { owner, homeNamespace, tenantNamespace }: MirrorContext,
  marks: { labels: Record<string, string>; annotations: Record<string, string> },
): DraftMeta {
  return {
    name,
    namespace: tenantNamespace,
    labels: { ...marks.labels, [LABEL_MANAGED_BY]: owner },
    annotations: { ...marks.annotations, [ANNOTATION_HOME_NAMESPACE]: homeNamespace },
  };
}

/**
 * Labels exactly as wanted, since they decide who acts on the object; annotations of others stay, and of `owned` those
 * that are not wanted go.
 */
export function mergedMeta(copy: ObjectMeta, wanted: DraftMeta, owned: readonly string[]): ObjectMeta {
  const others = Object.entries(copy.annotations ?? {}).filter(([key]) => !owned.includes(key));
  return {
    ...copy,
    labels: wanted.labels ?? {},
    annotations: { ...Object.fromEntries(others), ...wanted.annotations },
  };
}
