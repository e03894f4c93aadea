import type { Pod } from '../../api/wire.ts';
import type { KubeletBackend, PodLocation, PodQuestion } from './backend.ts';

/**
 * Names from a request's path. They become segments of a path on the foreign API server, so whatever is not a
 * plain Kubernetes name is refused before anything looks at it.
 */
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
/** Static pods have a hash for a UID. */
const UID = /^[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,126}[a-zA-Z0-9])?$/;

const isDnsSubdomain = (name: string): boolean => name.length <= 253 && DNS_SUBDOMAIN.test(name);

/** Parts of a streaming or log path. */
export interface PodPath extends PodQuestion {
  /** Only where the path names one. */
  uid?: string;
}

/** What is wrong with the names, in words for the caller; undefined when they are sound. */
export function invalidName(path: PodPath): string | undefined {
  if (!DNS_LABEL.test(path.namespace)) return 'invalid namespace';
  if (!isDnsSubdomain(path.pod)) return 'invalid pod name';
  if (path.uid !== undefined && !UID.test(path.uid)) return 'invalid pod UID';
  if (path.container !== undefined && !DNS_LABEL.test(path.container)) return 'invalid container name';
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

/** Of a request, as it came. */
export interface Target {
  path: string;
  query: URLSearchParams;
}

/** Path and query of a request target in origin form; undefined for any other form. */
export function splitTarget(target: string): Target | undefined {
  if (!target.startsWith('/')) return undefined;
  const mark = target.indexOf('?');
  if (mark === -1) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}

/** A complete answer that is no success. */
export interface Refusal {
  status: number;
  text: string;
}

interface LocateOptions {
  signal: AbortSignal;
  /** What is said of a pod for which nothing runs, by what was asked. */
  withoutBody: (pod: Pod) => Refusal;
}

/** A pod of this node by what a path says of it, or why there is none, in the kubelet's words where it has any. */
export async function locatePod(
  backend: Pick<KubeletBackend, 'locate'>,
  { uid, ...question }: PodPath,
  { signal, withoutBody }: LocateOptions,
): Promise<PodLocation | Refusal> {
  const { pod, container } = question;
  const located = await backend.locate(question, signal);
  if (located.kind === 'no pod') return { status: 404, text: `pod ${JSON.stringify(pod)} does not exist` };
  if (uid !== undefined && uid !== located.uid) return { status: 404, text: 'pod not found' };
  if (located.kind === 'no container') {
    const text = `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(pod)}`;
    return { status: 404, text };
  }
  if (located.kind === 'unknown') {
    const text = `what runs for pod ${JSON.stringify(pod)} in the foreign cluster is not known: ${located.why}`;
    return { status: 502, text };
  }
  return located.kind === 'no body' ? withoutBody(located.pod) : located;
}
