/** Namespaces in which a cluster runs itself: nothing of theirs leaves the cluster, and no peer is given one. */

const OWN = '^(kube|tributary)-';
const OWN_PATTERN = new RegExp(OWN, 'u');

/** Where cluster DNS runs. OpenShift has a namespace for it. */
export const DNS_NAMESPACES: readonly string[] = ['kube-system', 'openshift-dns'];

/** `systemNamespace`: where our own pods run, under whatever name. */
export const isClusterNamespace = (name: string, systemNamespace?: string): boolean =>
  name === systemNamespace || OWN_PATTERN.test(name);

/** CEL: the same about `name`, an expression. */
export const isClusterNamespaceIn = (name: string): string => `${name}.matches('${OWN}')`;
