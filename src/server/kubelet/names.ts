/**
 * Names from a request's path. They become segments of a path on the foreign API server, so whatever is not a
 * plain Kubernetes name is refused before anything looks at it.
 */
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
/** Static pods have a hash for a UID. */
const UID = /^[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,126}[a-zA-Z0-9])?$/;

export const isDnsLabel = (name: string): boolean => DNS_LABEL.test(name);
export const isDnsSubdomain = (name: string): boolean => name.length <= 253 && DNS_SUBDOMAIN.test(name);

/** Parts of a streaming or log path. */
export interface PodPath {
  namespace: string;
  pod: string;
  /** Only where the path names one. */
  uid?: string;
  container?: string;
}

/** What is wrong with the names, in words for the caller; undefined when they are sound. */
export function invalidName(path: PodPath): string | undefined {
  if (!isDnsLabel(path.namespace)) return 'invalid namespace';
  if (!isDnsSubdomain(path.pod)) return 'invalid pod name';
  if (path.uid !== undefined && !UID.test(path.uid)) return 'invalid pod UID';
  if (path.container !== undefined && !isDnsLabel(path.container)) return 'invalid container name';
  return undefined;
}

/** Decodes one segment of a path; undefined where the encoding is broken. */
export function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Path and query of a request target in origin form; undefined for any other form. */
export function splitTarget(target: string): { path: string; query: URLSearchParams } | undefined {
  if (!target.startsWith('/')) return undefined;
  const mark = target.indexOf('?');
  if (mark === -1) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}
