/**
 * Labels and annotations by which an object speaks to what its own cluster is made of: container runtimes, network
 * plugins, cloud accounts, autoscalers, publishers of names. A home does not send them, since they mean its own cluster;
 * a provider does not take them from peers.
 *
 * A list of names, not of what is allowed: people mark objects for their own programs, and a list of allowed marks would
 * refuse all of them. A provider that runs further controllers of that sort gives them a selector of namespaces.
 */

/** Beginnings of keys. */
export const STEERING_PREFIXES: readonly string[] = [
  // The kubelet takes pods with these for its own (static and mirror pods): no drain and no autoscaler touches them.
  'kubernetes.io/config.',
  // Devices and options that the container runtime adds, past requests and Pod Security.
  'cdi.k8s.io/',
  'io.kubernetes.cri-o.',
  'io.katacontainers.',
  'run.oci.',
  // Further networks, addresses of choice.
  'k8s.v1.cni.cncf.io/',
  'v1.multus-cni.io/',
  'cni.projectcalico.org/',
  'ipam.cilium.io/',
  'cni.cilium.io/',
  'ovn.kubernetes.io/',
  'k8s.ovn.org/',
  // Accounts of a cloud.
  'iam.amazonaws.com/',
  'eks.amazonaws.com/',
  'vpc.amazonaws.com/',
  'iam.gke.io/',
  'azure.workload.identity/',
  'aadpodidbinding',
  // Nodes that may not be taken away.
  'cluster-autoscaler.kubernetes.io/',
  'karpenter.sh/',
  // Names in public zones.
  'external-dns.alpha.kubernetes.io/',
  // Which volume a claim gets, and where: the fields of the claim say so, and admission reads those.
  'pv.kubernetes.io/',
  'volume.kubernetes.io/',
  'volume.beta.kubernetes.io/',
];

/** The same as a regular expression, of a form that RE2 reads, too: one look at a key instead of one for each prefix. */
export const STEERING_PATTERN: string = `^(${STEERING_PREFIXES.map((prefix) => prefix.replaceAll('.', '[.]')).join('|')})`;

const steering = new RegExp(STEERING_PATTERN, 'u');

export const isSteering = (key: string): boolean => steering.test(key);
