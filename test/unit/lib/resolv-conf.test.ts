import { expect, test } from '@jest/globals';

import { parseResolvConf } from '../../../src/lib/resolv-conf.ts';

test.each<[string, string, ReturnType<typeof parseResolvConf>]>([
  [
    'as the kubelet writes it',
    'search shop.svc.cluster.local svc.cluster.local cluster.local lan\nnameserver 10.96.0.10\noptions ndots:5\n',
    {
      nameservers: ['10.96.0.10'],
      searches: ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'lan'],
    },
  ],
  [
    'several servers, comments and blanks',
    '# a\n; b\n\t nameserver\t10.0.0.1  # c\nnameserver fd00::a\r\nnameserver\n',
    { nameservers: ['10.0.0.1', 'fd00::a'], searches: [] },
  ],
  ['the last searches count', 'search a b\nsearch c. .\n', { nameservers: [], searches: ['c'] }],
  ['nothing', '', { nameservers: [], searches: [] }],
])('%s', (_what, text, found) => {
  expect(parseResolvConf(text)).toEqual(found);
});
