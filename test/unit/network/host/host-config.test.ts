import { expect, test } from '@jest/globals';

import { isAboutUs } from '../../../../src/network/host/host-config.ts';

/** NFT_MSG_NEWRULE (6) with NFTA_RULE_TABLE (1), as `nft monitor` would get it, with padding. */
function newRule(table: string): Buffer {
  const name = Buffer.from(`${table}\0`);
  const attribute = Buffer.concat([Buffer.from([4 + name.length, 0, 1, 0]), name]);
  const header = Buffer.alloc(20);
  header.writeUInt32LE(20 + attribute.length, 0);
  header.writeUInt16LE(0x0a06, 4);
  return Buffer.concat([header, attribute, Buffer.alloc((4 - (attribute.length % 4)) % 4)]);
}

test.each(['tributary_gateway', 'tributary_node'])('%s is ours', (table) => {
  expect(isAboutUs(newRule(table))).toBe(true);
  expect(isAboutUs(Buffer.concat([newRule('kube-proxy'), newRule(table), newRule('nat')]))).toBe(true);
});

test.each(['kube-proxy', 'nat', 'cilium', ''])('"%s" is not', (table) => {
  expect(isAboutUs(newRule(table))).toBe(false);
});
