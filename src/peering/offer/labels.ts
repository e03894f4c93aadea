import { LABEL_VALUE_PATTERN } from '../../api/limits.ts';

/** What every offer may show of a node, whatever the policy says. */
export const PLACE_LABELS: readonly string[] = [
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'node.kubernetes.io/instance-type',
];

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
const PREFIX = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/u;
const VALUE = new RegExp(LABEL_VALUE_PATTERN, 'u');
/** Domains whose labels mean something to Kubernetes or to us, with everything below them. */
const RESERVED = /(^|\.)(kubernetes\.io|k8s\.io|tributary\.dev)$/u;

/**
 * Why a peer must not set this label on our virtual nodes; undefined where it may. Labels of Kubernetes' own domains
 * give a node roles, keep DaemonSets and balancers off or draw them, so only those of PLACE_LABELS pass.
 */
export function labelObjection(key: string, value: string): string | undefined {
  const slash = key.indexOf('/');
  const [prefix, name] = slash === -1 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  if (!NAME.test(name) || (prefix !== undefined && !PREFIX.test(prefix))) return 'is no label key';
  if (prefix !== undefined && RESERVED.test(prefix) && !PLACE_LABELS.includes(key)) {
    return 'belongs to a reserved domain';
  }
  return VALUE.test(value) ? undefined : 'has a value that no label can have';
}

/** Those labels that an offer can bear, in the order of their keys. */
export function offerableLabels(
  labels: Readonly<Record<string, string>>,
  most: number,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([key, value]) => labelObjection(key, value) === undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, most),
  );
}
