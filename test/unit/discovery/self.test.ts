import { expect, test } from '@jest/globals';
import { lanAnnouncement } from '../../../src/discovery/self.ts';

const own = {
  clusterID: 'milan'.padEnd(26, 'a'),
  clusterName: 'Milan',
  port: 7443,
  protocols: [1],
  endpoints: [],
};

test.each<[string, string[], { port: number; hosts: string[] }]>([
  ['nothing is advertised: this host', [], { port: 7443, hosts: [] }],
  ['an address', ['203.0.113.1:443'], { port: 443, hosts: ['203.0.113.1'] }],
  [
    'both families',
    ['203.0.113.1:443', '[2001:db8::1]:443'],
    { port: 443, hosts: ['203.0.113.1', '2001:db8::1'] },
  ],
  [
    'another port is another service',
    ['203.0.113.1:443', '203.0.113.2:444'],
    { port: 443, hosts: ['203.0.113.1'] },
  ],
  ['names say nothing on the LAN', ['peering.example:443'], { port: 7443, hosts: [] }],
  [
    'a name, then an address',
    ['peering.example:443', '203.0.113.1:8443'],
    { port: 8443, hosts: ['203.0.113.1'] },
  ],
  ['nonsense', ['', ':', '[::1', '203.0.113.1'], { port: 7443, hosts: [] }],
])('%s', (_, endpoints, { port, hosts }) => {
  const { announcement, hosts: said } = lanAnnouncement({ ...own, endpoints });
  expect({ port: announcement.port, hosts: said }).toEqual({ port, hosts });
  expect(announcement).toMatchObject({ clusterID: own.clusterID, clusterName: 'Milan', protocols: [1] });
});
