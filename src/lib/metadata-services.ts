/**
 * Where clouds give a node its identity, its credentials and its names, whatever network the node is in. AWS and most others: link-local
 * addresses. Alibaba Cloud: 100.100.100.200. Azure: 168.63.129.16. Oracle Cloud: 192.0.0.192, and fd00:c1::a9fe:a9fe over IPv6.
 * AWS over IPv6: fd00:ec2::/32, with instance metadata, DNS and the identities of EKS pods. Google Cloud: fd20:ce::254. Scaleway:
 * fd00:42::42.
 */
export const METADATA_SERVICES: readonly string[] = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:c1::a9fe:a9fe/128',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
];
