import { describe, expect, test } from '@jest/globals';
import { checkDocuments } from '../../../../src/peering/protocol/forms.ts';
import type { OfferedService } from '../../../../src/peering/protocol/documents.ts';
import { checkServices } from '../../../../src/peering/services/check.ts';

const service = (changes: Record<string, unknown> = {}): OfferedService => ({
  namespace: 'data',
  name: 'db',
  ports: [{ protocol: 'TCP', port: 5432, targetPort: 5432 }],
  endpoints: [{ address: '10.1.0.1', ready: true }],
  ...changes,
});
const port = (changes: Record<string, unknown>): object => ({
  protocol: 'TCP',
  port: 1,
  targetPort: 1,
  ...changes,
});

describe("a provider's word of its Services", () => {
  test('is taken in its form, and addresses in one spelling', () => {
    const said = { services: [service({ endpoints: [{ address: 'FD00:0::1', ready: false }] })] };
    const { changes, problems } = checkDocuments({ services: said });
    expect(problems).toEqual([]);
    expect(checkServices(changes.services ?? { services: [] }).services[0]?.endpoints).toEqual([
      { address: 'fd00::1', ready: false },
    ]);
  });

  test.each([
    ['no list', {}],
    ['too many Services', { services: Array.from({ length: 129 }, () => service()) }],
    [
      'too many endpoints',
      {
        services: [
          service({ endpoints: Array.from({ length: 1001 }, () => ({ address: '10.1.0.1', ready: true })) }),
        ],
      },
    ],
    ['too many ports', { services: [service({ ports: Array.from({ length: 33 }, () => port({})) })] }],
    ['a namespace that is a path', { services: [service({ namespace: '../kube-system' })] }],
    ['a name with a dot', { services: [service({ name: 'a.b' })] }],
    ['a name that begins with a digit', { services: [service({ name: '1db' })] }],
    ['a name too long', { services: [service({ name: 'x'.repeat(64) })] }],
    ['a port 0', { services: [service({ ports: [port({ port: 0 })] })] }],
    ['a port 65536', { services: [service({ ports: [port({ targetPort: 65_536 })] })] }],
    ['a port as text', { services: [service({ ports: [port({ port: '80' })] })] }],
    ['another protocol', { services: [service({ ports: [port({ protocol: 'ICMP' })] })] }],
    ['a port name that is nftables', { services: [service({ ports: [port({ name: 'a; drop' })] })] }],
    ['an appProtocol with a line break', { services: [service({ ports: [port({ appProtocol: 'a\nb' })] })] }],
    [
      'an address that is a name',
      { services: [service({ endpoints: [{ address: 'db.example', ready: true }] })] },
    ],
    ['ready as text', { services: [service({ endpoints: [{ address: '10.1.0.1', ready: 'yes' }] })] }],
  ])('is refused for %s', (_what, services) => {
    const { changes, problems } = checkDocuments({ services });
    expect(changes).toEqual({});
    expect(problems).toHaveLength(1);
  });

  test.each([
    ['a Service twice', [service(), service()], /data\/db is there twice/],
    ['no ports', [service({ ports: [] })], /it has no ports/],
    ['two ports without names', [service({ ports: [port({}), port({ port: 2 })] })], /must have a name/],
    [
      'two ports of one name',
      [service({ ports: [port({ name: 'a' }), port({ name: 'a', port: 2 })] })],
      /one name/,
    ],
    [
      'two ports of one number',
      [service({ ports: [port({ name: 'a' }), port({ name: 'b' })] })],
      /one number/,
    ],
    [
      'what is no address',
      [service({ endpoints: [{ address: '10.1.0.256', ready: true }] })],
      /is no address/,
    ],
    [
      'an address in two spellings',
      [
        service({
          endpoints: [
            { address: 'fd00::1', ready: true },
            { address: 'fd00:0::1', ready: true },
          ],
        }),
      ],
      /fd00::1 is there twice/,
    ],
    [
      'more than a Tunnel holds',
      Array.from({ length: 5 }, (_, n) =>
        service({
          name: `s${n}`,
          endpoints: Array.from({ length: 1000 }, (_unused, m) => ({
            address: `10.${n}.${m >> 8}.${m & 255}`,
            ready: true,
          })),
        }),
      ),
      /5000 addresses with ports/,
    ],
  ])('is refused as a whole for %s', (_what, services, message) => {
    expect(() => checkServices({ services })).toThrow(message);
  });
});
