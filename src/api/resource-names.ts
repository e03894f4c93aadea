/** What nodes count, by Kubernetes' own names. */
const NATIVE = new Set(['cpu', 'memory', 'pods', 'ephemeral-storage']);
/** Always told, zero too: whoever bounds by the list must not take a full cluster for a boundless one. */
export const BASIC_RESOURCES: readonly string[] = ['cpu', 'ephemeral-storage', 'memory', 'pods'];
/** Persistent storage: counted by no node, offered only as the SharingPolicy limits it. */
export const STORAGE = 'storage';

const HUGE_PAGES = /^hugepages-[1-9][0-9]{0,8}[KMG]i$/u;
const EXTENDED =
  /^(?=.{3,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
/** Kubernetes' own domains hold no extended resources (KEP-606), and quotas give these prefixes a meaning. */
const NOT_EXTENDED = /^(requests|limits)\.|kubernetes\.io\/|^count\//u;

export const isExtended = (name: string): boolean => EXTENDED.test(name) && !NOT_EXTENDED.test(name);

/** Whether nodes count it, so that no more of it can be lent than their shapes hold. */
export const isOfNodes = (name: string): boolean =>
  NATIVE.has(name) || HUGE_PAGES.test(name) || isExtended(name);

export const isOfferable = (name: string): boolean => name === STORAGE || isOfNodes(name);
