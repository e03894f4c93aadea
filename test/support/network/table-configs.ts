/** Random nftables tables, and tables as of a gateway with many peers. */

import type { ChainConfig, SetConfig, TableConfig } from '../../../src/network/host/host-config.ts';
import { fc } from '../property.ts';

const CHAINS = ['peer_a', 'peer_b', 'peer_c'] as const;
const OPTIONAL = { freq: 3 };

const octet = fc.integer({ min: 0, max: 3 });
const address = fc.tuple(octet, octet).map(([a, b]) => `10.${a}.${b}.1`);
/** Neighbours and overlaps are likely. */
const prefix = fc
  .tuple(
    octet,
    octet,
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0, 8, 14, 15, 16, 17, 23, 24, 31, 32),
  )
  .map(([a, b, c, length]) => masked([10, a, b, c], length));
const prefix6 = fc
  .tuple(octet, fc.constantFrom(0, 1, 16, 32, 33, 48, 64, 127, 128))
  .map(([a, length]) => (length <= 32 ? `fd00::/${Math.min(length, 8)}` : `fd00:${a}:1::/${length}`));

function masked(octets: readonly number[], length: number): string {
  const value = octets.reduce((sum, each) => sum * 256 + each, 0);
  const base = length === 0 ? 0 : Math.floor(value / 2 ** (32 - length)) * 2 ** (32 - length);
  const text = [24, 16, 8, 0].map((bits) => Math.floor(base / 2 ** bits) % 256).join('.');
  return length === 32 ? text : `${text}/${length}`;
}

const verdict = (chains: readonly string[]): fc.Arbitrary<string> =>
  fc.constantFrom(
    'accept',
    'drop',
    'return',
    ...chains.flatMap((chain) => [`jump ${chain}`, `goto ${chain}`]),
  );

/** Of elements with overlapping keys only the first is kept, because nft refuses such maps. */
function apart<T extends { key: string }>(elements: readonly T[]): T[] {
  const kept: { first: number; last: number; element: T }[] = [];
  for (const element of elements) {
    const [text = '', length = '32'] = element.key.split('/');
    const first = text.split('.').reduce((sum, each) => sum * 256 + Number(each), 0);
    const last = first + 2 ** (32 - Number(length)) - 1;
    if (kept.every((other) => other.last < first || last < other.first)) kept.push({ first, last, element });
  }
  return kept.map(({ element }) => element);
}

const ofFamily = (key: string): string => `${key} . ipv4`;
const withFamily = <T extends { key: string }>(elements: readonly T[]): T[] =>
  elements.map((element) => ({ ...element, key: ofFamily(element.key) }));

const setOf = (
  config: Omit<SetConfig, 'elements'>,
  elements: fc.Arbitrary<SetConfig['elements']>,
): fc.Arbitrary<SetConfig> => elements.map((some) => ({ ...config, elements: some }));

const keys = (key: fc.Arbitrary<string>): fc.Arbitrary<{ key: string }[]> =>
  fc.uniqueArray(
    key.map((text) => ({ key: text })),
    { maxLength: 6, selector: ({ key: text }) => text },
  );

function sets(chains: readonly string[]): fc.Arbitrary<SetConfig[]> {
  const pair = fc.record({ key: prefix, value: prefix.filter((text) => !text.endsWith('/0')) });
  const jump = fc.record({ key: prefix, value: verdict(chains) });
  const port = fc.tuple(address, fc.constantFrom(80, 443)).map(([ip, number]) => `${ip} . ${number}`);
  const unique = { maxLength: 5, selector: ({ key }: { key: string }) => key };
  const pairs = fc.record({
    key: fc.tuple(address, address).map((both) => both.join(' . ')),
    value: verdict(chains),
  });
  return fc
    .tuple(
      fc.option(setOf({ name: 'hosts', type: 'ipv4_addr', interval: false }, keys(address)), OPTIONAL),
      fc.option(setOf({ name: 'pods', type: 'ipv4_addr', interval: true }, keys(prefix)), OPTIONAL),
      fc.option(setOf({ name: 'pods6', type: 'ipv6_addr', interval: true }, keys(prefix6)), OPTIONAL),
      fc.option(
        setOf({ name: 'ports', type: 'ipv4_addr . inet_service', interval: false }, keys(port)),
        OPTIONAL,
      ),
      fc.option(
        setOf(
          { name: 'views', type: 'ipv4_addr', value: 'interval ipv4_addr', interval: true },
          fc.uniqueArray(pair, unique).map(apart),
        ),
        OPTIONAL,
      ),
      setOf(
        { name: 'from', type: 'ipv4_addr', value: 'verdict', interval: true },
        fc.uniqueArray(jump, unique).map(apart),
      ),
      // As those by which a gateway finds a peer.
      setOf(
        { name: 'keep', type: 'ipv4_addr . nf_proto', value: 'verdict', interval: true },
        fc.uniqueArray(jump, unique).map(apart).map(withFamily),
      ),
      fc.option(
        setOf({ name: 'known', type: 'ipv4_addr . nf_proto', interval: true }, keys(prefix.map(ofFamily))),
        OPTIONAL,
      ),
      fc.option(
        setOf(
          { name: 'between', type: 'ipv4_addr . ipv4_addr', value: 'verdict', interval: false },
          fc.uniqueArray(pairs, unique),
        ),
        OPTIONAL,
      ),
    )
    .map((all) => all.filter((set) => set !== null));
}

const RULES = [
  'ip saddr 10.0.0.0/8 counter drop comment "refused"',
  'ct state { established, related } accept',
  'iifname "wg0" ip daddr != { 10.1.0.0/16, 10.2.0.0/16 } counter drop comment "refused"',
  'tcp flags syn tcp option maxseg size set rt mtu',
  'counter accept',
  'meta l4proto icmp accept',
];

function chainsOf(names: readonly string[], uses: readonly string[]): fc.Arbitrary<ChainConfig[]> {
  const rules = fc.array(fc.constantFrom(...RULES), { maxLength: 4 });
  const priority = fc.constantFrom(-150, 0, 5);
  const base = fc.tuple(priority, rules).map(([number, texts]): ChainConfig => ({
    name: 'in',
    hook: { type: 'filter', hook: 'forward', priority: number },
    rules: [...texts, 'ip saddr vmap @from', 'ip saddr . meta nfproto vmap @keep', ...uses],
  }));
  const peers = names.map((name) => rules.map((texts): ChainConfig => ({ name, rules: texts })));
  return fc.tuple(base, ...peers);
}

const USES: Readonly<Record<string, string>> = {
  hosts: 'ip daddr @hosts counter accept comment "hosts"',
  pods: 'ip daddr @pods accept',
  pods6: 'ip6 daddr @pods6 accept',
  ports: 'ip daddr . tcp dport @ports accept',
  known: 'ip daddr . meta nfproto @known accept',
  between: 'ip saddr . ip daddr vmap @between',
};

export const tableConfig: fc.Arbitrary<TableConfig> = fc
  .subarray([...CHAINS])
  .chain((names) => sets(names).map((some) => ({ names, some })))
  .chain(({ names, some }) => {
    const uses = some.map(({ name }) => USES[name]).filter((rule) => rule !== undefined);
    return chainsOf(names, uses).map((chains) => ({ chains, sets: some }));
  });

/** Four chains and four map elements per peer, as on a gateway. */
export function peersTable(count: number): TableConfig {
  const peers = Array.from({ length: count }, (_, index) => index);
  const view = (index: number): string => `10.${64 + Math.floor(index / 256)}.${index % 256}.0/24`;
  const map = (name: string, chain: string): SetConfig => ({
    name,
    type: 'ipv4_addr . nf_proto',
    value: 'verdict',
    interval: true,
    elements: peers.map((index) => ({ key: ofFamily(view(index)), value: `jump ${chain}_${index}` })),
  });
  const base = (name: string, hook: ChainConfig['hook'], rules: string[]): ChainConfig => ({
    name,
    rules,
    ...(hook !== undefined && { hook }),
  });
  return {
    sets: [map('guard', 'guard'), map('into', 'dnat'), map('out', 'snat'), map('access', 'access')],
    chains: [
      base('guards', { type: 'filter', hook: 'prerouting', priority: -150 }, [
        'iifname "wg0" ip saddr . meta nfproto vmap @guard',
      ]),
      base('dnats', { type: 'nat', hook: 'prerouting', priority: -110 }, [
        'iifname "wg0" ip saddr . meta nfproto vmap @into',
      ]),
      base('snats', { type: 'nat', hook: 'postrouting', priority: 90 }, [
        'oifname "wg0" ip daddr . meta nfproto vmap @out',
      ]),
      base('accesses', { type: 'filter', hook: 'forward', priority: 0 }, [
        'iifname "wg0" ip saddr . meta nfproto vmap @access',
      ]),
      ...peers.flatMap((index): ChainConfig[] => [
        {
          name: `guard_${index}`,
          rules: [
            'ip daddr 10.72.0.0/16 return',
            'ip daddr 10.73.0.0/20 return',
            `counter drop comment "refused.${index}"`,
          ],
        },
        {
          name: `dnat_${index}`,
          rules: [
            'ip daddr 10.72.0.0/16 dnat ip prefix to 10.244.0.0/16',
            'ip daddr 10.73.0.0/20 dnat ip prefix to 10.70.0.0/20',
          ],
        },
        {
          name: `snat_${index}`,
          rules: [
            'ip saddr 10.244.0.0/16 snat ip prefix to 10.72.0.0/16',
            'ip saddr 10.70.0.0/20 snat ip prefix to 10.73.0.0/20',
          ],
        },
        {
          name: `access_${index}`,
          rules: ['ct state established,related accept', 'ip daddr 10.244.0.0/24 accept', 'drop'],
        },
      ]),
    ],
  };
}
