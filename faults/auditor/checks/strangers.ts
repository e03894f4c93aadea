/** I6: nothing of others was written. Pure. */
import type { ClusterSnapshot, StoredObject } from '../snapshot-model.ts';
import { OWN_GROUP, OWN_NAME, OWN_NAMESPACES, OWN_PREFIX } from '../contract.ts';
import type { Violation } from '../violation.ts';

export interface Ours {
  /** Namespaces that are offloaded, tenant namespaces, and those of other runs. */
  readonly namespaces: ReadonlySet<string>;
  /** Virtual nodes, also those of other runs. */
  readonly nodes: ReadonlySet<string>;
}

/** Kinds that come and go by themselves, as `resource.group`. */
const PASSING =
  /^(?:events|events\.events\.k8s\.io|leases\.coordination\.k8s\.io|componentstatuses|ipaddresses\..*|servicecidrs\..*|apiservices\..*|.*\.metrics\.k8s\.io)$/u;
/** Requests for serving certificates are made by kubelets, and removed by Kubernetes. */
const REQUESTS = 'certificatesigningrequests.certificates.k8s.io';
/** The endpoints of the API servers themselves. */
const OF_SERVERS = /^(?:endpoints|endpointslices\.discovery\.k8s\.io) default\/kubernetes/u;
/** Programs of Kubernetes itself, as managedFields names them. What only they have written is theirs. */
const SYSTEM =
  /^(?:kube-(?:apiserver|controller-manager|scheduler|proxy)|api-priority-.*|kubelet|kwok|kwok-controller|cloud-controller-manager|clusterrole-aggregation-controller)$/u;

export const isPassing = (resource: string): boolean => PASSING.test(resource) || resource === REQUESTS;

export function isStranger({ resource, namespace, name, keys }: StoredObject, ours: Ours): boolean {
  if (isPassing(resource) || resource.endsWith(`.${OWN_GROUP}`)) return false;
  if (OF_SERVERS.test(`${resource} ${namespace}/${name}`)) return false;
  if (ours.namespaces.has(namespace) || OWN_NAMESPACES.has(namespace)) return false;
  if (resource === 'namespaces') return !ours.namespaces.has(name) && !OWN_NAMESPACES.has(name);
  // CSINodes have the names of nodes.
  if (resource === 'nodes' || resource.startsWith('csinodes.')) return !ours.nodes.has(name);
  return !OWN_NAME.test(name) && !keys.some((key) => key.startsWith(OWN_PREFIX));
}

const keyOf = ({ resource, namespace, name }: StoredObject): string => `${resource} ${namespace}/${name}`;

export function strangerFaults(before: ClusterSnapshot, after: ClusterSnapshot, ours: Ours): Violation[] {
  const old = new Map(before.objects.map((one) => [keyOf(one), one]));
  const now = new Map(after.objects.map((one) => [keyOf(one), one]));
  const keys = [...new Set([...old.keys(), ...now.keys()])];
  return keys.flatMap((key): Violation[] => {
    const change = changeOf(old.get(key), now.get(key), ours);
    return change === undefined ? [] : [{ invariant: 'I6', what: `${key} in ${after.cluster} ${change}` }];
  });
}

/** An object that was a stranger before counts whatever it is now: a label of ours on it is a write, too. */
function changeOf(
  old: StoredObject | undefined,
  now: StoredObject | undefined,
  ours: Ours,
): string | undefined {
  const one = old ?? now;
  if (one === undefined || !isStranger(one, ours)) return undefined;
  if (now === undefined) return `is gone (uid ${one.uid})`;
  if (old === undefined)
    return isOfSystem(now) ? undefined : `was made (uid ${now.uid}), by ${writersText(now)}`;
  if (old.uid !== now.uid) return `was deleted and made anew (uid ${old.uid}, now ${now.uid})`;
  return old.version === now.version ? undefined : writtenText(old, now);
}

function writtenText(old: StoredObject, now: StoredObject): string | undefined {
  const writers = newWriters(old, now);
  const isUntouched = old.content === now.content && writers.length === 0;
  if (isUntouched || (writers.length > 0 && writers.every((writer) => SYSTEM.test(writer)))) return undefined;
  const by = writers.length === 0 ? 'somebody whom managedFields do not name' : writers.join(', ');
  return `was changed (resourceVersion ${old.version}, now ${now.version}), by ${by}`;
}

const isOfSystem = ({ writers }: StoredObject): boolean =>
  writers.length > 0 && writers.every(({ manager }) => SYSTEM.test(manager));
const writersText = ({ writers }: StoredObject): string =>
  writers.length === 0 ? 'somebody' : [...new Set(writers.map(({ manager }) => manager))].join(', ');

/** Managers whose fields or times are others than before. */
function newWriters(old: StoredObject, now: StoredObject): string[] {
  const known = new Set(old.writers.map(({ manager, mark }) => `${manager} ${mark}`));
  const found = now.writers.filter(({ manager, mark }) => !known.has(`${manager} ${mark}`));
  return [...new Set(found.map(({ manager }) => manager))];
}
