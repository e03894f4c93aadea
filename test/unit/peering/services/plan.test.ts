import { describe, expect, test } from '@jest/globals';
import type { AcceptedService } from '../../../../src/api/acceptance-policy.ts';
import type { Service } from '../../../../src/api/wire.ts';
import type { OfferedService } from '../../../../src/peering/protocol/documents.ts';
import { checkDocuments } from '../../../../src/peering/protocol/forms.ts';
import {
  forgeEndpoints,
  forgeService,
  type HomeService,
  isOurs,
  mendedService,
  mendedSlice,
  silenced,
} from '../../../../src/peering/services/home-services.ts';
import { LinkPatience, PATIENCE_MS } from '../../../../src/peering/services/link-patience.ts';
import { checkServices, planOf } from '../../../../src/peering/services/plan.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const MILAN = 'm'.repeat(26);
const offered = (name: string): OfferedService => ({
  namespace: 'data',
  name,
  ports: [{ name: 'pg', protocol: 'TCP', port: 5432, targetPort: 6432 }],
  endpoints: [
    { address: '10.244.0.1', ready: true },
    { address: '10.244.0.2', ready: false },
    { address: '10.96.0.1', ready: true },
    { address: 'fd00::1', ready: true },
  ],
});
const accepts = (homeNamespace: string, more: Partial<AcceptedService> = {}): AcceptedService => ({
  namespace: 'data',
  name: 'db',
  homeNamespace,
  ...more,
});
const plan = (accepted: AcceptedService[], services = [offered('db')]): ReturnType<typeof planOf> =>
  planOf({
    provider: MILAN,
    offered: services,
    accepted,
    namespace: (name) =>
      name === 'shop' ? { isPeers: false } : name === 'lent' ? { isPeers: true } : undefined,
  });
const stateOf = (accepted: AcceptedService[]): unknown[] =>
  plan(accepted).statuses.map(({ state, reason }) => [state, reason]);

describe('where a Service of a provider stands', () => {
  test('offered, until a policy names it', () => {
    expect(plan([])).toEqual({
      wanted: [],
      statuses: [
        {
          namespace: 'data',
          name: 'db',
          state: 'Offered',
          ports: [{ name: 'pg', protocol: 'TCP', port: 5432 }],
        },
      ],
    });
    expect(plan([accepts('shop')]).wanted).toMatchObject([{ homeNamespace: 'shop', homeName: 'db' }]);
  });

  test.each([
    ['accepted', accepts('shop'), 'Used', undefined],
    ['not offered', accepts('shop', { name: 'x' }), 'NotOffered', undefined],
    ['for no namespace', accepts('nowhere'), 'Failed', 'HomeNamespaceNotFound'],
    ['for a namespace of the cluster', accepts('kube-system'), 'Failed', 'HomeNamespaceNotAllowed'],
    ['for one of ours', accepts('tributary-system'), 'Failed', 'HomeNamespaceNotAllowed'],
    ['for one of a peer', accepts('lent'), 'Failed', 'HomeNamespaceNotAllowed'],
  ])('%s', (_what, accepted, state, reason) => {
    expect(stateOf([accepted])).toContainEqual([state, reason]);
  });

  test('two of one home name: the first has it', () => {
    const { wanted, statuses } = plan(
      [accepts('shop'), accepts('shop', { name: 'other', homeName: 'db' })],
      [offered('db'), offered('other')],
    );
    expect(wanted.map(({ offered: { name } }) => name)).toEqual(['db']);
    expect(statuses[1]).toMatchObject({ name: 'other', state: 'Failed', reason: 'NameTaken' });
  });
});

describe('what stands for it', () => {
  const home: HomeService = {
    provider: MILAN,
    offered: offered('db'),
    homeNamespace: 'shop',
    homeName: 'db',
  };
  const podAddress = (theirs: string): string | undefined =>
    theirs.startsWith('10.244.')
      ? theirs.replace('10.244.', '100.64.')
      : theirs === 'fd00::1'
        ? 'fd99::1'
        : undefined;
  const stored = { ...forgeService(home), metadata: { ...forgeService(home).metadata, uid: 'u' } } as Service;

  test('is made of pods of the provider alone, one slice for each family', () => {
    const { slices, ready, used } = forgeEndpoints(home, podAddress, false);
    expect(
      slices.map(({ metadata, addressType, endpoints }) => [metadata.name, addressType, endpoints]),
    ).toEqual([
      [
        'tributary-db-ipv4',
        'IPv4',
        [
          { addresses: ['100.64.0.1'], conditions: { ready: true, serving: true, terminating: false } },
          { addresses: ['100.64.0.2'], conditions: { ready: false, serving: false, terminating: false } },
        ],
      ],
      [
        'tributary-db-ipv6',
        'IPv6',
        [{ addresses: ['fd99::1'], conditions: { ready: true, serving: true, terminating: false } }],
      ],
    ]);
    expect(ready).toBe(2);
    expect(used.map(({ address, port }) => `${address} ${port}`)).toEqual([
      '100.64.0.1 6432',
      '100.64.0.2 6432',
      'fd99::1 6432',
    ]);
  });

  test('has nothing ready while it cannot be reached', () => {
    const { slices, ready } = forgeEndpoints(home, podAddress, true);
    expect(ready).toBe(0);
    expect(
      slices.flatMap(({ endpoints }) => endpoints).map((endpoint) => endpoint?.conditions?.ready),
    ).toEqual([false, false, false]);
  });

  test('is ours by both labels, and only then', () => {
    expect(isOurs(stored, MILAN)).toBe(true);
    expect(isOurs(stored, 'x'.repeat(26))).toBe(false);
    expect(isOurs({ ...stored, metadata: { ...stored.metadata, labels: {} } }, MILAN)).toBe(false);
  });

  test('is mended where somebody changed it, and else left as it is', () => {
    expect(mendedService(stored, forgeService(home))).toBeUndefined();
    const defaulted = {
      ...stored,
      metadata: { ...stored.metadata, labels: { ...stored.metadata.labels, mine: 'too' } },
      spec: { ...stored.spec, clusterIP: '10.96.0.9', sessionAffinity: 'None' },
    } as Service;
    expect(mendedService(defaulted, forgeService(home))).toBeUndefined();
    const hijacked = {
      ...defaulted,
      spec: { ...defaulted.spec, selector: { app: 'x' }, externalIPs: ['192.0.2.1'] },
    };
    expect(mendedService(hijacked, forgeService(home))).toEqual(defaulted);
  });

  test('a slice is written when something in it differs', () => {
    const [wanted] = forgeEndpoints(home, podAddress, false).slices;
    if (wanted === undefined) throw new Error('no slice');
    const current = { ...wanted, metadata: { ...wanted.metadata, uid: 'u' } } as never;
    expect(mendedSlice(current, wanted)).toBeUndefined();
    const [down] = forgeEndpoints(home, podAddress, true).slices;
    expect(mendedSlice(current, down ?? wanted)?.endpoints?.[0]?.conditions?.ready).toBe(false);
    const silent = silenced(current);
    expect(silent?.endpoints?.every(({ conditions }) => conditions?.serving === false)).toBe(true);
    expect(silent && silenced(silent)).toBeUndefined();
  });
});

test('the patience with a peer without a link ends once, and a link renews it', async () => {
  const clock = new FakeClock();
  const ended: string[] = [];
  const patience = new LinkPatience(clock, (clusterID) => ended.push(clusterID));
  patience.note(MILAN, false);
  await clock.advance(PATIENCE_MS - 1);
  expect(patience.isOver(MILAN)).toBe(false);
  patience.note(MILAN, true);
  patience.note(MILAN, false);
  await clock.advance(PATIENCE_MS - 1);
  patience.note(MILAN, false);
  expect(ended).toEqual([]);
  await clock.advance(1);
  expect([ended, patience.isOver(MILAN)]).toEqual([[MILAN], true]);
  patience.note(MILAN, true);
  expect(patience.isOver(MILAN)).toBe(false);
});

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
