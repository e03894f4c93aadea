import { expect, test } from '@jest/globals';
import type { PodSpec } from '../../../../src/api/wire.ts';
import type { HomeDnsWay } from '../../../../src/provider/home-dns.ts';
import type { ReferenceState } from '../../../../src/provider/pods/decide.ts';
import type { Refusal } from '../../../../src/provider/pods/refusal.ts';
import { referenceState } from '../../../../src/provider/reflect/reference-state.ts';
import type { Reflector } from '../../../../src/provider/reflect/reflector.ts';
import type { TokenReconciler } from '../../../../src/provider/reflect/tokens.ts';
import { homePod } from '../support/pods.ts';

type Copy = ReturnType<Reflector['state']>;

const stateOf = (
  spec: Partial<PodSpec>,
  copies: Record<string, Copy> = {},
  homeDns: HomeDnsWay = { kind: 'NotChosen' },
): ReferenceState => {
  const reflector = {
    state: (_kind: string, name: string) => copies[name] ?? 'ready',
  } as unknown as Reflector;
  const tokens = { state: () => 'ready' } as unknown as TokenReconciler;
  const policies = { obstacle: () => undefined };
  const parts = { reflector, tokens, storage: { state: () => [] }, homeDns, policies };
  return referenceState(homePod({ spec }), parts);
};
const notesOf = (spec: Partial<PodSpec>, copies: Record<string, Copy>): readonly string[] =>
  stateOf(spec, copies).notes.map(({ reason, message }) => `${reason}: ${message}`);

const optional = true;
const WITHHELD: Copy = {
  reason: 'MissingReference',
  message: 'secret "k" stays home: policy',
  withheld: true,
};
const main = { name: 'main', image: 'web:1' };

test.each<[string, Partial<PodSpec>, Record<string, Copy>, string[]]>([
  ['nothing is missing', { containers: [{ ...main, envFrom: [{ secretRef: { name: 'k' } }] }] }, {}, []],
  [
    'mandatory objects are missing',
    {
      containers: [
        {
          ...main,
          envFrom: [{ secretRef: { name: 'k' } }],
          env: [{ name: 'V', valueFrom: { configMapKeyRef: { name: 'c', key: 'v' } } }],
        },
      ],
      volumes: [{ name: 'files', secret: { secretName: 'v' } }],
    },
    { k: 'missing', c: 'missing', v: 'missing' },
    [
      'MandatorySecretNotFound: secret "v" not found',
      'MandatorySecretNotFound: secret "k" not found',
      'MandatoryConfigMapNotFound: configmap "c" not found',
    ],
  ],
  [
    'optional variables are missing; of optional volumes and pull secrets nothing is said',
    {
      containers: [
        {
          ...main,
          envFrom: [{ configMapRef: { name: 'c', optional } }],
          env: [{ name: 'V', valueFrom: { secretKeyRef: { name: 'k', key: 'v', optional } } }],
        },
      ],
      volumes: [{ name: 'files', configMap: { name: 'v', optional } }],
      imagePullSecrets: [{ name: 'p' }],
    },
    { k: 'missing', c: 'missing', v: 'missing', p: 'missing' },
    [
      'OptionalConfigMapNotFound: container "main" goes without optional variables: configmap "c" not found',
      'OptionalSecretNotFound: container "main" goes without optional variables: secret "k" not found',
    ],
  ],
  [
    'an object stays home',
    { containers: [{ ...main, envFrom: [{ secretRef: { name: 'k' } }] }] },
    { k: WITHHELD },
    ['FailedToReadMandatorySecret: secret "k" stays home: policy'],
  ],
  [
    'an optional object stays home',
    { containers: [{ ...main, envFrom: [{ secretRef: { name: 'k', optional } }] }] },
    { k: WITHHELD },
    [
      'FailedToReadOptionalSecret: container "main" goes without optional variables: secret "k" stays home: policy',
    ],
  ],
])('%s', (_, spec, copies, expected) => {
  expect(notesOf(spec, copies)).toEqual(expected);
});

test('who asks cluster DNS waits until it is known which one, since that cannot be changed later', () => {
  const refusal = { reason: 'MissingReference', message: 'not yet' };
  const unknown = { kind: 'Unknown', reason: 'PrefixRefused', message: 'not yet' } as const;
  expect(stateOf({ dnsPolicy: 'ClusterFirst' }, {}, unknown).refused).toEqual([refusal]);
  expect(stateOf({ dnsPolicy: 'Default' }, {}, unknown).refused).toEqual([]);
  const none = { ...unknown, kind: 'None' } as const;
  expect(stateOf({ dnsPolicy: 'ClusterFirst' }, {}, none).refused).toEqual([]);
});

test('where the volumes are is said before any other refusal, and no other one while that is not known', () => {
  const volumeNotHere: Refusal = {
    reason: 'VolumeNotHere',
    message: 'claim "data" is a volume of this cluster',
  };
  const forbidden: Refusal = { reason: 'Forbidden', message: 'no token may be brought there' };
  const state = (claims: readonly Refusal[] | 'pending'): ReferenceState =>
    referenceState(
      homePod({ spec: { containers: [{ ...main, envFrom: [{ secretRef: { name: 'k' } }] }] } }),
      {
        reflector: { state: () => forbidden } as unknown as Reflector,
        tokens: { state: () => forbidden } as unknown as TokenReconciler,
        storage: { state: () => claims },
        homeDns: { kind: 'NotChosen' },
        policies: { obstacle: () => undefined },
      },
    );
  expect(state([volumeNotHere]).refused[0]).toBe(volumeNotHere);
  expect(state([]).refused[0]).toBe(forbidden);
  expect(state('pending')).toMatchObject({ refused: [], pending: true });
});
