/** Ranges that mean another network in each place: RFC 1918, RFC 6598, RFC 4193. */
export const PRIVATE_RANGES: readonly string[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
];
