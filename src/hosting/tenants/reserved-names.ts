/**
 * Names that no tenant namespace is given, whatever a peer asks for and a SharingPolicy says; and those that a policy opens. The
 * name of a namespace is a domain in the search list of every pod here (`svc.cluster.local`, ndots 5), and other policies of a
 * cluster exempt namespaces by their names.
 */
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';

/** With namespace `com` and Service `github`, a peer would answer for github.com; with `svc`, for all Services of the cluster. */
const DOMAINS = (
  'svc pod cluster node dns local localhost localdomain internal intranet private corp home lan ' +
  'arpa alt onion wpad isatap com org net edu gov mil int info biz test example invalid'
).split(' ');

/** Other programs of a cluster run there, and policies exempt them. */
const PROGRAMS = (
  'default openshift argocd calico cert-manager cilium flux gatekeeper istio kyverno linkerd ' +
  'rook-ceph vault'
).split(' ');

/** Policies exempt namespaces by such prefixes. */
const PREFIXES = 'openshift|istio|calico|cattle|cilium|tigera|gke|gmp|aks|azure|eks|amazon|aws';

/** Country domains have two letters, `xn--` begins those of other scripts, numbers end what looks like an address. */
const FORMS = `^([a-z]{2}|[0-9]+|xn--.*|.*-system|(${PREFIXES})-.*)$`;

const WORDS = new Set([...DOMAINS, ...PROGRAMS]);
const FORMS_PATTERN = new RegExp(FORMS, 'u');

/** Whoever creates pods in such a namespace owns the cluster, or answers for names that are not its own. */
export const isReservedNamespace = (name: string): boolean =>
  isClusterNamespace(name) || WORDS.has(name) || FORMS_PATTERN.test(name);

/** CEL: the same about `name`, an expression; without what `isClusterNamespaceIn` says. */
export const isReservedWordIn = (name: string): string =>
  `(${name} in [${[...WORDS].map((word) => `'${word}'`).join(', ')}] || ${name}.matches('${FORMS}'))`;

/**
 * Whether a SharingPolicy opens this name: it is one of `open`, or matches one with `*` and has a hyphen. No top-level domain but
 * those of `xn--` has one, so a pattern opens none of them, not even those that come up later.
 */
export const isOpenName = (name: string, open: readonly string[]): boolean =>
  open.some((one) => (one.includes('*') ? name.includes('-') && matches(name, one) : name === one));

function matches(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop() ?? '';
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false;
  const middle = name.slice(first.length, name.length - last.length);
  let at = 0;
  // The first place is as good as any: what follows has then the most room.
  return rest.every((part) => {
    const found = middle.indexOf(part, at);
    at = found + part.length;
    return found !== -1;
  });
}
