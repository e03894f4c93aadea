import { expect, test } from '@jest/globals';
import { tunnelDefinition } from '../../../src/api/crd/tunnel.ts';
import type { Schema } from '../../../src/api/crd/schema.ts';
import { CIDR_PATTERN, MAX_CIDR_LENGTH, TUNNEL_LIMITS } from '../../../src/api/limits.ts';
import { formatPrefix, parsePrefix } from '../../../src/lib/prefix.ts';
import { checkDocuments } from '../../../src/peering/protocol/forms.ts';

const at = (...path: string[]): Schema | undefined =>
  path.reduce<Schema | undefined>((schema, key) => schema?.properties?.[key], tunnelDefinition.schema);

const cidrs = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
const network = (more: object): object => ({
  publicKey: `${'A'.repeat(43)}=`,
  endpoints: [],
  pods: [],
  external: [],
  transit: [],
  views: [],
  ...more,
});

test.each([
  ['pods', TUNNEL_LIMITS.pods, (list: string[]) => list],
  ['external', TUNNEL_LIMITS.external, (list: string[]) => list],
  ['transit', TUNNEL_LIMITS.transit, (list: string[]) => list],
  ['views', TUNNEL_LIMITS.seenAs, (list: string[]) => list.map((prefix) => ({ prefix, as: prefix }))],
])('as many %s as a peer may tell fit into a Tunnel', (field, most, items) => {
  const told = (count: number): number =>
    checkDocuments({ network: network({ [field]: items(cidrs(count)) }) }).problems.length;
  expect([told(most), told(most + 1)]).toEqual([0, 1]);
  const schema = field === 'views' ? at('spec', 'seenAs') : at('spec', 'peer', field);
  expect(schema?.maxItems).toBe(most);
});

test('whatever a peer tells, each prefix that is refused has room', () => {
  const { pods, external, transit } = TUNNEL_LIMITS;
  expect(at('status', 'refused')?.maxItems).toBeGreaterThanOrEqual(pods + external + transit);
});

test('every prefix as we write it fits', () => {
  for (const text of ['0.0.0.0/0', '255.255.255.255/32', '::/0', `${'ffff:'.repeat(7)}ffff/128`]) {
    const written = formatPrefix(parsePrefix(text));
    expect(written).toMatch(new RegExp(CIDR_PATTERN));
    expect(written.length).toBeLessThanOrEqual(MAX_CIDR_LENGTH);
  }
});
