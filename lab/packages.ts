/** What the containers workload takes from the distribution. */

/** Debian packages, for `apt-get install`. */
export const debianPackages = [
  'containerd',
  'runc',
  'containernetworking-plugins',
  'iproute2',
  'nftables',
  'iptables',
  'conntrack',
  'ipset',
  'socat',
  'util-linux',
  'mount',
  'busybox-static',
] as const;

/** A program whose absence shows that the package is missing. */
export const packageProgram: Readonly<Partial<Record<(typeof debianPackages)[number], string>>> = {
  containerd: 'containerd',
  runc: 'runc',
  iproute2: 'ip',
  nftables: 'nft',
  iptables: 'iptables',
  conntrack: 'conntrack',
  ipset: 'ipset',
  socat: 'socat',
  'util-linux': 'nsenter',
  mount: 'mount',
};
