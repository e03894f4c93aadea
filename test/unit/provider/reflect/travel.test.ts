import { describe, expect, test } from '@jest/globals';
import { ANNOTATION_REFLECT } from '../../../../src/api/names.ts';
import type { ReflectionPolicy } from '../../../../src/api/reflection.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import {
  homeReferenceName,
  type ReferenceKind,
  remoteReferenceName,
} from '../../../../src/provider/forge/references.ts';
import {
  isWanted,
  mayBeTied,
  mayTravelFor,
  refusedToPod,
  staysHome,
} from '../../../../src/provider/reflect/travel.ts';
import { homePod } from '../support/pods.ts';

const TOKEN = 'kubernetes.io/service-account-token';
const BOOTSTRAP = 'bootstrap.kubernetes.io/token';

function object(name: string, annotations?: Record<string, string>): KubeObject {
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: '',
      ...(annotations !== undefined && { annotations }),
    },
  };
}
const says = (word: string): Record<string, string> => ({ [ANNOTATION_REFLECT]: word });

describe('what is to be over there', () => {
  test.each<[ReflectionPolicy, Record<string, string> | undefined, boolean, boolean]>([
    ['Referenced', undefined, false, false],
    ['Referenced', undefined, true, true],
    ['Referenced', says('false'), true, false],
    ['Referenced', says('true'), false, true],
    ['Referenced', says('yes'), false, false],
    ['All', undefined, false, true],
    ['All', says('false'), true, false],
    ['OptIn', undefined, true, false],
    ['OptIn', says('true'), false, true],
    ['OptIn', says('false'), true, false],
    ['None', undefined, true, false],
    ['None', says('true'), true, false],
  ])('%s, annotated %j, referenced %p: %p', (policy, annotations, isReferenced, expected) => {
    const source = object('settings', annotations);
    expect(isWanted('ConfigMap', { policy }, { source, isReferenced })).toBe(expected);
    // A pod is told why exactly where what it refers to stays home.
    if (isReferenced) expect(staysHome('ConfigMap', { policy }, source) === undefined).toBe(expected);
  });

  test.each<ReflectionPolicy>(['Referenced', 'All', 'OptIn', 'None'])(
    'under %s the root certificate goes with whoever mounts it',
    (policy) => {
      const source = object('kube-root-ca.crt');
      expect(isWanted('ConfigMap', { policy }, { source, isReferenced: true })).toBe(true);
      expect(isWanted('ConfigMap', { policy }, { source, isReferenced: false })).toBe(false);
      expect(staysHome('ConfigMap', { policy }, source)).toBeUndefined();
    },
  );

  test.each<[ReferenceKind, string]>([
    ['Secret', 'tributary-token-00000000-0000-4000-8000-000000000001'],
    ['ConfigMap', 'kube-root-ca.crt'],
  ])('a %s called %s travels under another name, and further under one more', (kind, name) => {
    const rule = { policy: 'All' } as const;
    expect(isWanted(kind, rule, { source: object(name), isReferenced: true })).toBe(true);
    const there = remoteReferenceName(kind, name);
    const further = remoteReferenceName(kind, there);
    expect(new Set([name, there, further]).size).toBe(3);
    expect(homeReferenceName(kind, there)).toBe(name);
    expect(homeReferenceName(kind, further)).toBe(there);
  });

  test.each<[ReferenceKind, string]>([
    ['Secret', 'tributary-carried-token-1'],
    ['Secret', 'tributary-token-1'],
    ['Secret', 'kube-root-ca.crt'],
    ['ConfigMap', 'tributary-token-00000000-0000-4000-8000-000000000001'],
  ])('a %s called %s keeps its name', (kind, name) => {
    expect(remoteReferenceName(kind, name)).toBe(name);
    expect(homeReferenceName(kind, name)).toBe(name);
  });

  test('where a path to leave out cannot be read, nothing leaves', () => {
    const rule = { policy: 'All', drop: ['data..a'] } as const;
    const source = object('settings');
    expect(isWanted('ConfigMap', { ...rule, drop: [...rule.drop] }, { source, isReferenced: true })).toBe(
      false,
    );
    expect(staysHome('ConfigMap', { ...rule, drop: [...rule.drop] }, source)?.message).toContain('data..a');
  });

  test.each<[ReflectionPolicy, Record<string, string> | undefined, RegExp]>([
    [
      'Referenced',
      says('false'),
      /secret "key" stays home: its annotation tributary\.dev\/reflect says "false"/u,
    ],
    [
      'OptIn',
      undefined,
      /policy of its namespace for secrets is OptIn, and it has no annotation tributary\.dev\/reflect: "true"/u,
    ],
    ['None', says('true'), /policy of its namespace for secrets is None$/u],
  ])('%s, annotated %j, says why', (policy, annotations, message) => {
    const why = staysHome('Secret', { policy }, object('key', annotations));
    expect(why).toMatchObject({ reason: 'MissingReference', withheld: true });
    expect(why?.message).toMatch(message);
  });
});

describe('tokens', () => {
  const token = object('robot', { 'kubernetes.io/service-account.name': 'robot' });
  const as = (serviceAccountName?: string): ReturnType<typeof homePod> =>
    homePod({ spec: { ...(serviceAccountName !== undefined && { serviceAccountName }) } });

  test.each<[ReferenceKind, KubeObject, boolean]>([
    ['Secret', token, true],
    ['ConfigMap', token, false],
    ['Secret', object('bootstrap-token-abcdef'), true],
    ['Secret', object('password'), false],
  ])('%s %j may be one: %p', (kind, source, expected) => {
    expect(mayBeTied(kind, source)).toBe(expected);
  });

  test('go with pods of their own account only', () => {
    expect(mayTravelFor(TOKEN, token, [])).toBe(false);
    expect(mayTravelFor(TOKEN, token, [as()])).toBe(false);
    expect(mayTravelFor(TOKEN, token, [as(), as('robot')])).toBe(true);
    expect(mayTravelFor('Opaque', token, [])).toBe(true);
    expect(mayTravelFor(BOOTSTRAP, token, [as('robot')])).toBe(false);
  });

  test('a pod is told whose the token is', () => {
    expect(refusedToPod(TOKEN, token, as('robot'))).toBeUndefined();
    expect(refusedToPod(TOKEN, token, as())?.message).toBe(
      'secret "robot" is a token of service account "robot", and the pod runs as "default": service-account tokens of others never leave',
    );
    expect(refusedToPod(BOOTSTRAP, token, as('robot'))?.message).toMatch(
      /bootstrap token: these never leave/u,
    );
  });
});
