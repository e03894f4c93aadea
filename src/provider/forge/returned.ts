/**
 * A home pod that is itself the body of a pod of another cluster: it is being placed back into that cluster. What the first hop
 * has given it is about the cluster between, and what it asks for is where it runs. Pure.
 */
import {
  ANNOTATION_CARRIED_NAMESPACE,
  ANNOTATION_CARRIED_UID,
  ANNOTATION_HOME_NAMESPACE,
  LABEL_HOME_UID,
} from '../../api/names.ts';
import { isGuest } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';

/** The namespace that it has for its user; undefined for a pod that begins here. */
export const carriedNamespaceOf = (pod: Pod): string | undefined =>
  isGuest(pod) ? pod.metadata.annotations?.[ANNOTATION_HOME_NAMESPACE] : undefined;

/** Marks of the pod over there. */
export function carriedAnnotations(home: Pod): Record<string, string> {
  const namespace = carriedNamespaceOf(home);
  if (namespace === undefined) return {};
  return {
    [ANNOTATION_CARRIED_NAMESPACE]: namespace,
    [ANNOTATION_CARRIED_UID]: home.metadata.labels?.[LABEL_HOME_UID] ?? '',
  };
}
