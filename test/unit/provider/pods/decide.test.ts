import { describe, expect, test } from '@jest/globals';
import { LABEL_HOME_UID } from '../../../../src/api/names.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { forgeStatus, refusedStatus } from '../../../../src/provider/forge/status.ts';
import type { Action, Situation } from '../../../../src/provider/pods/decide.ts';
import { decide } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING, situation } from '../support/pods.ts';

const ENDING = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
const fresh = homePod();
const ran = homePod({ status: RUNNING });
const ending = homePod({ metadata: ENDING, status: RUNNING });
const done = homePod({ status: { ...RUNNING, phase: 'Succeeded' } });
const body = remotePod(fresh, { status: RUNNING });
const shown = homePod({ status: forgeStatus(fresh, body, CONTEXT, NOW) });
const others = remotePod(homePod({ metadata: { uid: 'an-earlier-one' } }), { status: RUNNING });
const daemon = homePod({
  metadata: {
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }],
  },
});

const endingBody = (left: number): Pod =>
  remotePod(fresh, {
    metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: left },
    status: RUNNING,
  });

const isReady = (status: 'True' | 'False'): Pod =>
  homePod({ status: { ...RUNNING, conditions: [{ type: 'Ready', status }] } });
const [ready, marked] = [isReady('True'), isReady('False')];
/** Of a body that runs in this cluster, while the tunnel is down. */
const returned = (isReturned: boolean): Situation['context'] => ({
  ...CONTEXT,
  network: 'Down',
  isReturnedReady: (uid, address) =>
    uid === body.metadata.uid && address === RUNNING.podIP ? isReturned : undefined,
});

type Row = [name: string, given: Partial<Situation>, expected: object];
const ROWS: Row[] = [
  ['nothing is known', {}, { do: 'nothing' }],
  ['a new pod', { home: fresh }, { do: 'create', pod: { metadata: { namespace: 'tenant', name: 'web' } } }],
  [
    'a new pod that would ask the DNS of home, if that could be',
    { home: fresh, context: { ...CONTEXT, noHomeDns: 'why' } },
    {
      do: 'create',
      notes: [{ reason: 'ForeignDNS', message: 'the pod asks the DNS of the foreign cluster: why' }],
    },
  ],
  [
    'one that asks no cluster DNS',
    {
      home: homePod({ spec: { dnsPolicy: 'Default' } }),
      context: { ...CONTEXT, noHomeDns: 'why' },
    },
    { do: 'create', notes: [] },
  ],
  ['a new pod, out of contact', { home: fresh, contact: false }, { do: 'nothing' }],
  ['a new pod, refused a moment ago', { home: fresh, held: true }, { do: 'nothing' }],
  [
    'a new pod in a namespace unknown',
    { home: fresh, context: undefined },
    {
      do: 'refuse',
      reason: 'NamespaceNotOffloaded',
      message:
        'namespace "shop" is not offloaded to milan; if it is to be: kubectl label namespace shop tributary.dev/offload=true',
    },
  ],
  [
    'a new pod in a namespace unknown, on a virtual node made by hand',
    {
      home: fresh,
      context: undefined,
      node: { virtualNode: 'rome', cluster: 'milan', isPeered: false },
    },
    {
      do: 'refuse',
      reason: 'NamespaceNotOffloaded',
      message:
        'namespace "shop" is not offloaded: add it to spec.namespaces of VirtualNode rome, which was made by hand',
    },
  ],
  [
    'a new pod that the webhook has let out, before the provider has made its namespace',
    {
      home: homePod({ metadata: { annotations: { 'tributary.dev/strategy': 'Remote' } } }),
      context: undefined,
    },
    {
      do: 'refuse',
      reason: 'NamespaceBeingMade',
      message:
        'namespace "shop" is being made by milan, and the pod waits for it; if that lasts: kubectl -n shop describe namespaceoffloading',
    },
  ],
  [
    'a new pod in a namespace being taken out',
    { home: fresh, accepting: false },
    {
      do: 'refuse',
      reason: 'NamespaceNotOffloaded',
      message: 'namespace "shop" leaves milan, so nothing is begun there',
    },
  ],
  [
    'a new pod in a namespace being taken out, which its own template sends here',
    {
      home: homePod({
        spec: {
          nodeSelector: { 'tributary.dev/virtual-node': 'milan' },
          tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
        },
      }),
      accepting: false,
    },
    {
      do: 'refuse',
      reason: 'NamespaceNotOffloaded',
      message:
        'namespace "shop" leaves milan, so nothing is begun there. To run it at home, take the nodeSelector tributary.dev/virtual-node and the toleration of tributary.dev/virtual-node out of it, and make it anew',
    },
  ],
  [
    'a pod in a namespace being taken out, whose body no kubelet has accepted yet',
    {
      home: fresh,
      remote: remotePod(fresh, { status: { phase: 'Pending' } }),
      accepting: false,
    },
    { do: 'deleteRemote', gracePeriodSeconds: 1 },
  ],
  [
    'a pod in a namespace being taken out, whose body runs',
    { home: fresh, remote: body, accepting: false },
    { do: 'writeStatus' },
  ],
  ['a pod of a DaemonSet', { home: daemon }, { do: 'refuse', reason: 'DaemonSetNotOffloaded' }],
  [
    'a pod that was refused, whose body has been given a node',
    {
      home: homePod({
        status: refusedStatus(fresh, { reason: 'Unschedulable', message: 'full' }, NOW),
      }),
      remote: remotePod(fresh, {
        status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] },
      }),
    },
    {
      do: 'writeStatus',
      status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] },
    },
  ],
  [
    'a pod that was never refused, whose body has been given a node',
    {
      home: fresh,
      remote: remotePod(fresh, {
        status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] },
      }),
    },
    { do: 'nothing' },
  ],
  ['a pod whose body is unscheduled as yet', { home: fresh, remote: remotePod(fresh) }, { do: 'nothing' }],
  [
    'a pod whose body runs',
    { home: fresh, remote: body },
    { do: 'writeStatus', status: { phase: 'Running' } },
  ],
  ['a pod whose body runs, out of contact', { home: fresh, remote: body, contact: false }, { do: 'nothing' }],
  [
    'a pod that was placed back and was marked with its lost node',
    { home: marked, remote: body, contact: false, context: returned(true) },
    { do: 'writeStatus', status: { conditions: [{ type: 'Ready', status: 'True' }] } },
  ],
  [
    'a pod that was placed back, and is not ready here',
    { home: ready, remote: body, contact: false, context: returned(false) },
    { do: 'writeStatus', status: { conditions: [{ type: 'Ready', status: 'False' }] } },
  ],
  [
    'a pod that was placed back, and is ready, behind a dead tunnel',
    { home: ready, remote: body, contact: false, context: returned(true) },
    { do: 'nothing' },
  ],
  [
    'a pod that was not placed back, behind a dead tunnel',
    { home: ready, remote: body, contact: false, context: { ...CONTEXT, network: 'Down' } },
    { do: 'writeStatus', status: { conditions: [{ type: 'Ready', status: 'False' }] } },
  ],
  [
    'a pod that was not placed back and was marked with its lost node',
    { home: marked, remote: body, contact: false, context: { ...CONTEXT, network: 'Down' } },
    { do: 'nothing' },
  ],
  ['a pod whose body runs, as home shows', { home: shown, remote: body }, { do: 'nothing' }],
  [
    'a running pod in a namespace being taken out',
    { home: shown, remote: body, accepting: false },
    { do: 'nothing' },
  ],
  [
    'a new image',
    { home: homePod({ metadata: { generation: 2 }, status: RUNNING }), remote: body },
    { do: 'change', change: { what: 'metadata and spec' } },
  ],
  [
    'a new image, refused a moment ago: the status still travels',
    { home: homePod({ metadata: { generation: 2 } }), remote: body, held: true },
    { do: 'writeStatus' },
  ],
  ['a pod whose body is gone', { home: ran }, { do: 'confirmLost', tenantNamespace: 'tenant' }],
  ['a pod whose body is gone, out of contact', { home: ran, contact: false }, { do: 'nothing' }],
  ['a pod that ran, in a namespace unknown', { home: ran, context: undefined }, { do: 'nothing' }],
  ['a body of an earlier pod', { home: fresh, remote: others }, { do: 'collect', remote: others }],
  [
    'a body of an earlier pod, out of contact',
    { home: fresh, remote: others, contact: false },
    { do: 'nothing' },
  ],
  [
    'a body of an earlier pod that is ending',
    {
      home: fresh,
      remote: {
        ...others,
        metadata: { ...others.metadata, deletionTimestamp: NOW, deletionGracePeriodSeconds: 1 },
      },
    },
    { do: 'refuse', reason: 'NameTaken' },
  ],
  ['a body without a home pod', { remote: body }, { do: 'collect', remote: body }],
  ['a body without a home pod, out of contact', { remote: body, contact: false }, { do: 'nothing' }],
  ['a body without a home pod, ending with grace', { remote: endingBody(30) }, { do: 'collect' }],
  ['a body without a home pod, ending at once', { remote: endingBody(1) }, { do: 'nothing' }],
  ['a deletion', { home: ending, remote: body }, { do: 'deleteRemote', gracePeriodSeconds: 30 }],
  ['a deletion, out of contact', { home: ending, remote: body, contact: false }, { do: 'nothing' }],
  ['a deletion under way', { home: ending, remote: endingBody(30) }, { do: 'writeStatus' }],
  [
    'a deletion under way, hastened',
    {
      home: homePod({ metadata: { ...ENDING, deletionGracePeriodSeconds: 5 }, status: RUNNING }),
      remote: endingBody(30),
    },
    { do: 'deleteRemote', gracePeriodSeconds: 5 },
  ],
  [
    'a deletion forced, held by a finalizer: the containers still get a second',
    {
      home: homePod({ metadata: { ...ENDING, deletionGracePeriodSeconds: 0 }, status: RUNNING }),
      remote: endingBody(30),
    },
    { do: 'deleteRemote', gracePeriodSeconds: 1 },
  ],
  [
    'a deletion forced, and told',
    {
      home: homePod({ metadata: { ...ENDING, deletionGracePeriodSeconds: 0 }, status: shown.status ?? {} }),
      remote: endingBody(1),
    },
    { do: 'nothing' },
  ],
  ['a deletion whose body is gone', { home: ending }, { do: 'finish', tenantNamespace: 'tenant' }],
  ['a deletion whose body is gone, out of contact', { home: ending, contact: false }, { do: 'nothing' }],
  [
    'a deletion in a namespace unknown',
    { home: ending, context: undefined, contact: false },
    { do: 'finish', tenantNamespace: undefined },
  ],
  [
    'a deletion while an earlier body holds the name',
    {
      home: ending,
      remote: {
        ...others,
        metadata: { ...others.metadata, deletionTimestamp: NOW, deletionGracePeriodSeconds: 1 },
      },
    },
    { do: 'finish' },
  ],
  [
    'a finished pod',
    { home: done, remote: remotePod(fresh, { status: { phase: 'Succeeded' } }) },
    { do: 'nothing' },
  ],
  ['a finished pod without a body', { home: done }, { do: 'nothing' }],
  ['a finished pod whose body runs', { home: done, remote: body }, { do: 'deleteRemote' }],
  ['a finished pod whose body is ending', { home: done, remote: endingBody(30) }, { do: 'nothing' }],
  [
    'a finished pod that is deleted',
    { home: homePod({ metadata: ENDING, status: { phase: 'Failed' } }), remote: body },
    { do: 'deleteRemote' },
  ],
];

test.each(ROWS)('%s', (_name, given, expected) => {
  expect(decide(situation(given))).toMatchObject(expected);
});

describe('whatever the caches hold', () => {
  const homes = [undefined, fresh, ran, ending, done, daemon];
  const remotes = [
    undefined,
    body,
    others,
    endingBody(30),
    endingBody(1),
    remotePod(fresh),
    { ...body, status: {} },
  ];
  const flags = [true, false];
  const all = homes.flatMap((home) =>
    remotes.flatMap((remote) =>
      flags.flatMap((contact) =>
        flags.flatMap((accepting) =>
          flags.flatMap((held) =>
            [CONTEXT, undefined].map((context) =>
              situation({ home, remote, contact, accepting, held, context }),
            ),
          ),
        ),
      ),
    ),
  );
  const destructive = new Set<Action['do']>(['deleteRemote', 'collect', 'confirmLost']);

  test(`out of contact nothing is destroyed, begun or overwritten (${all.length} situations)`, () => {
    const actions = all
      .filter(({ contact, context }) => !contact && context !== undefined)
      .map((given) => decide(given).do);
    expect(new Set(actions)).toEqual(new Set(['nothing', 'refuse']));
  });

  test('a home pod is ended only when it was asked to end', () => {
    const finished = all.filter((given) => decide(given).do === 'finish');
    expect(finished.every(({ home }) => home?.metadata.deletionTimestamp !== undefined)).toBe(true);
    expect(
      finished.every(({ home, remote }) => remote?.metadata.labels?.[LABEL_HOME_UID] !== home?.metadata.uid),
    ).toBe(true);
  });

  test('what has finished never begins again, nor is shown as anything else', () => {
    const actions = all.filter(({ home }) => home === done).map((given) => decide(given).do);
    expect(actions.every((action) => ['nothing', 'deleteRemote', 'collect'].includes(action))).toBe(true);
  });

  test('a body is begun only where there is none', () => {
    for (const given of all) if (decide(given).do === 'create') expect(given.remote).toBeUndefined();
  });

  test('every kind of action but the harmless is among them', () => {
    const seen = new Set(all.map((given) => decide(given).do));
    for (const action of destructive) expect(seen).toContain(action);
  });
});
