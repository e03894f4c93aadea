import { expect, test } from '@jest/globals';

import { ANNOTATION_WHEN_AWAY, ANNOTATION_WHEN_LOST } from '../../../../src/api/names.ts';
import type { WhenAway } from '../../../../src/api/namespace-offloading.ts';
import { ownTolerations, withStay } from '../../../../src/api/node-life.ts';
import type { OwnerReference, Pod, Toleration } from '../../../../src/api/wire.ts';
import { admit } from '../../../../src/offloading/admission/decide.ts';
import { decideAway, staysMessage } from '../../../../src/offloading/away/decide.ts';
import { decideHold } from '../../../../src/offloading/away/hold.ts';
import { isKeptHome } from '../../../../src/offloading/held-off.ts';
import { at, boundPod, cluster, NOW_MS, offloading, REPLICA_SET } from '../release/support.ts';

const life = (tolerationSeconds?: number): Toleration[] =>
  ['not-ready', 'unreachable'].map((what) => ({
    key: `node.kubernetes.io/${what}`,
    operator: 'Exists',
    effect: 'NoExecute',
    ...(tolerationSeconds !== undefined && { tolerationSeconds }),
  }));
const OTHER: Toleration = { key: 'tributary.dev/virtual-node', operator: 'Exists' };
const owner = (kind: string, apiVersion: string): OwnerReference => ({ ...REPLICA_SET, kind, apiVersion });
const STATEFUL_SET = owner('StatefulSet', 'apps/v1');
const JOB = owner('Job', 'batch/v1');
const WIDGET = owner('Widget', 'example.org/v1');

interface Given {
  owner?: OwnerReference | undefined;
  tolerations?: Toleration[];
  annotations?: Record<string, string>;
  claim?: boolean;
  metadata?: Partial<Pod['metadata']>;
}

const DEFAULT = [OTHER, ...life(300)];
const SET = { tolerations: [OTHER, ...life()], annotations: { [ANNOTATION_WHEN_AWAY]: 'Stay' } };

function pod(given: Given = {}): Pod {
  const { tolerations = DEFAULT, annotations, claim = false, metadata } = given;
  const controller = 'owner' in given ? given.owner : REPLICA_SET;
  const base = boundPod(
    {
      ...(controller && { ownerReferences: [controller] }),
      ...(annotations && { annotations }),
      ...metadata,
    },
    { phase: 'Running' },
  );
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
  return {
    ...base,
    spec: { containers: [], nodeName: 'milan', tolerations, ...(claim && { volumes }) },
  };
}

const STAY: WhenAway = { pods: 'Stay' };
const move = (afterSeconds?: number): WhenAway => ({
  pods: 'Move',
  ...(afterSeconds !== undefined && { afterSeconds }),
});

test.each<[string, Given, WhenAway | undefined, number, string]>([
  ['nothing is said', {}, undefined, 1000, 'nothing'],
  ['Stay', {}, STAY, 1000, 'stay Contact'],
  ['Stay that is in effect', SET, STAY, 1000, 'nothing'],
  ['Stay that was taken back', SET, undefined, 1000, 'stay Default'],
  ['Move, too early', {}, move(60), 59, 'wait 1000'],
  ['Move that is due', {}, move(60), 60, 'move'],
  ['Move at once', {}, move(0), 0, 'move'],
  ['Move after so long that Kubernetes would be first', {}, move(600), 60, 'stay Contact'],
  ['and then it is waited for', SET, move(600), 60, 'wait 540000'],
  ['and then it is due', SET, move(600), 600, 'move'],
  ['Move where Stay was', SET, move(60), 10, 'stay Default'],
  ['Move where Stay was, and overdue', SET, move(60), 100, 'move'],
  ['Move without a time is at 300 s', {}, move(), 299, 'stay Contact'],
  ['of a StatefulSet', { owner: STATEFUL_SET }, move(0), 10, 'stay Contact StatefulSet'],
  ['of a Job', { owner: JOB }, move(0), 10, 'stay Contact Job'],
  ['of a Job where nothing is said', { owner: JOB }, undefined, 10, 'stay Contact Job'],
  ['of a controller that nobody knows', { owner: WIDGET }, move(0), 10, 'stay Contact Widget'],
  ['without a controller', { owner: undefined }, move(0), 10, 'stay Contact without a controller'],
  [
    'without a controller that may be replaced',
    { owner: undefined, annotations: { [ANNOTATION_WHEN_LOST]: 'Replace' } },
    move(0),
    10,
    'stay Contact without a controller',
  ],
  [
    'of a StatefulSet that may run twice',
    { owner: STATEFUL_SET, annotations: { [ANNOTATION_WHEN_LOST]: 'Replace' } },
    move(0),
    10,
    'move',
  ],
  [
    'of a ReplicaSet that must not run twice',
    { annotations: { [ANNOTATION_WHEN_LOST]: 'Leave' } },
    move(0),
    10,
    'stay Contact ReplicaSet',
  ],
  ['with its data', { claim: true }, move(0), 10, 'stay Contact volumes'],
  ['with a stay of its own', { tolerations: [OTHER, ...life(60)] }, move(0), 10, 'nothing'],
  ['that tolerates everything', { tolerations: [{ operator: 'Exists' }] }, STAY, 10, 'nothing'],
  ['that has no such tolerations', { tolerations: [] }, STAY, 10, 'stay Contact'],
  ['that is ending', { metadata: { deletionTimestamp: at(0) } }, move(0), 10, 'nothing'],
  ['of a DaemonSet', { owner: owner('DaemonSet', 'apps/v1') }, STAY, 10, 'nothing'],
])('a pod: %s', (...row) => {
  const [, given, whenAway, awaySeconds, expected] = row;
  const facts = { offloading: offloading(whenAway && { whenAway }), awayMs: awaySeconds * 1000 };
  const action = decideAway(pod(given), facts);
  const [what = '', until, ...why] = expected.split(' ');
  expect(action.do).toBe(what);
  if (action.do === 'stay') {
    expect(action.until).toBe(until);
    expect(action.why?.text ?? '').toContain(why.join(' '));
    expect(action.why === undefined).toBe(why.length === 0);
  }
  if (action.do === 'wait') expect(action.ms).toBe(Number(until));
});

test.each<[string, Given, RegExp]>([
  [
    'of a Job',
    { owner: JOB },
    /off for certain: kubectl taint node milan .*out-of-service=nodeshutdown:NoExecute$/u,
  ],
  ['with its data', { claim: true }, /wait for its volumes as well: bring that cluster back/u],
  [
    'of a StatefulSet with its data',
    { owner: STATEFUL_SET, claim: true },
    /must not run twice.*wait for its volumes/u,
  ],
  [
    'without a controller',
    { owner: undefined },
    /make it again under another name; kubectl taint .* deletes it for good$/u,
  ],
])('what is told of a pod %s', (_, given, expected) => {
  const action = decideAway(pod(given), { offloading: offloading({ whenAway: move(0) }), awayMs: 10 });
  const why = action.do === 'stay' ? action.why : undefined;
  expect(why && staysMessage('milan', why)).toMatch(expected);
});

test('a pod that nobody offloads any more stays where it must not run twice', () => {
  expect(decideAway(pod({ owner: JOB }), { offloading: undefined, awayMs: 0 }).do).toBe('stay');
  expect(decideAway(pod(), { offloading: undefined, awayMs: 1e9 }).do).toBe('nothing');
});

test('tolerations: others keep their place, and the foreign cluster never sees what is said of the virtual node', () => {
  const set = withStay(pod(), undefined);
  expect(set).toEqual([OTHER, ...life()]);
  expect(withStay({ spec: { containers: [], tolerations: set } }, 300)).toEqual(DEFAULT);
  expect(withStay({ spec: { containers: [] } }, undefined)).toEqual(life());
  expect(ownTolerations(pod(SET))).toEqual(DEFAULT);
  expect(ownTolerations(pod({ tolerations: life(7) }))).toEqual(life(7));
});

const HOME: WhenAway = { pods: 'Move', afterSeconds: 60, to: 'Home' };
const hold = (
  awaySeconds: number,
  { spec = { whenAway: HOME }, until = undefined as string | undefined } = {},
): ReturnType<typeof decideHold> => {
  const heldOff = until === undefined ? [] : [{ owner: '*', virtualNode: 'milan', until }];
  const facts = { virtualNode: 'milan', awayMs: awaySeconds * 1000, nowMs: NOW_MS };
  return decideHold(offloading(spec, { heldOff }), facts);
};

test('new pods are kept home from just before others move, as long as the cluster is away, and then for a while', () => {
  expect(hold(10)).toEqual({ afterMs: 45_000 });
  const entry = { owner: '*', virtualNode: 'milan', until: at(600) };
  expect(hold(55)).toEqual({ heldOff: [entry], isNew: true, afterMs: 300_000 });
  expect(hold(100, { until: at(500) })).toEqual({ afterMs: 200_000 });
  expect(hold(300, { until: at(299) })).toEqual({ heldOff: [entry], afterMs: 300_000 });
  expect(hold(100, { spec: { whenAway: { ...HOME, to: 'Anywhere' } } })).toBeUndefined();
});

test.each([
  ['Remote', false, 'Local'],
  ['Remote', true, 'Remote'],
  ['LocalAndRemote', false, undefined],
] as const)('a new pod meanwhile, strategy %s, with claims: %s', (podStrategy, claim, expected) => {
  const heldOff = [{ owner: '*', virtualNode: 'milan', until: at(60) }];
  const spec = { podStrategy, whenAway: HOME };
  const held = offloading(spec, { heldOff, clusters: [cluster('milan', 'Failed')] });
  const asked = pod({ claim, tolerations: [], metadata: { name: 'new' } });
  const { nodeName: _none, ...unbound } = asked.spec ?? { containers: [] };
  const admission = (nowMs: number): string =>
    JSON.stringify(
      admit({ ...asked, spec: unbound }, { offloading: held, failedNodes: [], isOpen: false, nowMs }).patch,
    );
  const strategy = (nowMs: number): string | undefined =>
    /"tributary.dev\/strategy":"(\w+)"/u.exec(admission(nowMs))?.[1];
  // What tolerates no virtual node is home without a word.
  expect(strategy(NOW_MS)).toBe(expected === 'Local' ? undefined : expected);
  expect(strategy(NOW_MS + 61_000)).toBe(podStrategy);
  expect(isKeptHome(held, NOW_MS + 61_000)).toBe(false);
});
