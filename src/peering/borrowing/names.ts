import { advertisements } from '../../api/advertisement.ts';
import { MAX_VIRTUAL_NODE_NAME } from '../../api/manifest.ts';
import { ANNOTATION_NODE_NAME, LABEL_PROVIDER } from '../../api/names.ts';
import { nodes } from '../../api/resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { BorrowingCaches } from './caches.ts';
import { isOf } from './virtual-node.ts';

/** Length of what PerNode appends to a name (offer/shapes.ts), with the dash before it. */
const SUFFIX_LENGTH = 11;
const ID_PART_LENGTH = 5;
const MAX_BASE = MAX_VIRTUAL_NODE_NAME - SUFFIX_LENGTH - (ID_PART_LENGTH + 1);

/**
 * Names for a provider's VirtualNodes, the nicest first: its own name as a DNS label, then the same with a part of its
 * ID, then the ID alone.
 */
export function baseNames(clusterName: string | undefined, clusterID: string): string[] {
  const label = (clusterName ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, '-')
    .slice(0, MAX_BASE)
    .replaceAll(/^-+|-+$/gu, '');
  const named = label === '' ? [] : [label, `${label}-${clusterID.slice(0, ID_PART_LENGTH)}`];
  return [...named, `peer-${clusterID}`];
}

export const nodeNameOf = (base: string, suffix: string): string =>
  suffix === '' ? base : `${base}-${suffix}`;

/** Where names are looked for. */
interface NameSources {
  client: KubeClient;
  caches: Pick<BorrowingCaches, 'virtualNodes'>;
}

/**
 * The base of the names of a provider's VirtualNodes: the first name that nobody else has. It is chosen once and kept on
 * the Advertisement, since pods are bound to Nodes by name, and a cluster may call itself something else tomorrow.
 */
export async function chooseName(
  sources: NameSources,
  { clusterID, clusterName }: { clusterID: string; clusterName: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  for (const name of baseNames(clusterName, clusterID)) {
    if ((await holderOf(sources, { name, clusterID }, signal)) === undefined) return name;
  }
  throw new TributaryError(
    'Invalid',
    `every name for the virtual node of ${clusterID} is taken by another Node`,
  );
}

/** The kind of the object that has the name already and is not of this provider; undefined: there is none. */
export async function holderOf(
  { client, caches }: NameSources,
  { name, clusterID }: { name: string; clusterID: string },
  signal: AbortSignal,
): Promise<'VirtualNode' | 'Node' | undefined> {
  const virtualNode = caches.virtualNodes.get(name);
  if (virtualNode !== undefined) return isOf(virtualNode, clusterID) ? undefined : 'VirtualNode';
  const node = await client.get(nodes, { name }, { signal }).catch(ignoring('NotFound'));
  return node === undefined || node.metadata.labels?.[LABEL_PROVIDER] === clusterID ? undefined : 'Node';
}

/** For `catch` of a creation: what somebody else has made just now is seen at the next look. */
export const asConflict =
  (what: string) =>
  (error: unknown): never => {
    if (!hasCode(error, 'AlreadyExists')) throw error;
    throw new TributaryError('Conflict', `${what} was made in the meantime`, { cause: error });
  };

/** Null: a new one is chosen at the next look. */
export async function recordName(
  client: KubeClient,
  clusterID: string,
  name: string | null,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_NODE_NAME]: name } } };
  await client.patch(advertisements, { name: clusterID }, { type: 'merge', body }, { signal });
}

const MAX_LENGTH = 63;
const ID_LENGTH = 8;

/**
 * What the provider calls itself, as a label value; without such a name, the first characters of its ID. Namespaces are
 * sent to clusters by this label, and a cluster may take the name of another one. So a part of the ID is appended, except
 * for the one cluster whose virtual nodes here have that name. Pure.
 *
 * @param nodeName the base of the names of its virtual nodes
 */
export function clusterLabel(
  clusterName: string | undefined,
  clusterID: string,
  nodeName: string | undefined,
): string {
  const value = labelValue(clusterName ?? '', MAX_LENGTH);
  const id = clusterID.slice(0, ID_LENGTH);
  if (value === '') return id;
  const isItsOwn = nodeName === baseNames(clusterName, clusterID)[0];
  return isItsOwn ? value : `${labelValue(value, MAX_LENGTH - ID_LENGTH - 1)}-${id}`;
}

const labelValue = (text: string, length: number): string =>
  text
    .replaceAll(/[^-A-Za-z0-9_.]+/gu, '-')
    .replace(/^[^A-Za-z0-9]+/u, '')
    .slice(0, length)
    .replace(/[^A-Za-z0-9]+$/u, '');

const MAX_CLASSES = 64;
/** The form that the kind VirtualNode takes. A class of another form is left out, so that the rest is written. */
const CLASS = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u;

/**
 * Classes of Ingresses here, and what they become over there: first what people say, then classes of the same name. The
 * empty class stands for Ingresses without a class, and only people can say what becomes of them. Pure.
 */
export function ingressClassesOf(
  asked: Readonly<Record<string, string>> = {},
  offered: readonly string[] = [],
): Record<string, string> {
  const classes = new Map(offered.map((name) => [name, name]));
  for (const name of Object.keys(asked)) classes.delete(name);
  const all = [...Object.entries(asked), ...[...classes].toSorted(([a], [b]) => (a < b ? -1 : 1))];
  return Object.fromEntries(
    all
      .filter(([here, there]) => (here === '' || CLASS.test(here)) && CLASS.test(there))
      .slice(0, MAX_CLASSES),
  );
}

/**
 * StorageClasses here, and what they become over there: only what people say. A class of the same name is not enough, as
 * it is for Ingresses, since data stay where they were put.
 */
export function storageClassesOf(asked: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asked)
      .filter(([here, there]) => CLASS.test(here) && CLASS.test(there))
      .slice(0, MAX_CLASSES),
  );
}

/** The PriorityClasses that the provider lends, in the form that the kind VirtualNode takes. */
export const priorityClassesOf = (offered: readonly string[] = []): string[] =>
  offered.filter((name) => CLASS.test(name)).toSorted();

/** The StorageClasses that the provider lends, sorted; an empty list says that it lends none. */
export function offeredStorageClassesOf(offered: readonly { name: string }[] = []): string[] {
  const names = new Set(offered.map(({ name }) => name).filter((name) => CLASS.test(name)));
  return [...names].toSorted().slice(0, MAX_CLASSES);
}
