import { expect, test } from '@jest/globals';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { decide, type Situation } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING, situation } from '../support/pods.ts';

/** What becomes of a body whose home pod home has lost, beside a home pod of the same name. */

const lost = homePod({ metadata: { uid: 'lost' } });
const { metadata, spec } = forgePod(lost, CONTEXT);
const remote = remotePod(lost, {
  metadata,
  spec: spec ?? {},
  status: RUNNING,
});
const same = homePod();
const other = homePod({ spec: { containers: [{ name: 'main', image: 'web:2' }] } });

test.each<[string, Partial<Situation>, object]>([
  ['without a restore', { home: same }, { do: 'collect', isInTheWay: true }],
  ['one that serves it', { home: same, kept: true }, { do: 'adopt', home: same, remote }],
  [
    'one that serves a pod which home shows as running',
    { home: { ...same, status: RUNNING }, kept: true },
    { do: 'adopt' },
  ],
  ['the same, out of contact', { home: same, kept: true, contact: false }, { do: 'nothing' }],
  [
    'one that does not serve it, and has its name',
    { home: other, kept: true },
    { do: 'collect', isInTheWay: true },
  ],
  [
    'one that does not serve it, while home shows a body that is gone',
    { home: { ...other, status: RUNNING }, kept: true },
    { do: 'confirmLost' },
  ],
  [
    'beside a pod that has finished, which never runs again',
    { home: { ...same, status: { ...RUNNING, phase: 'Succeeded' } }, kept: true },
    { do: 'collect', isInTheWay: false },
  ],
  [
    'beside a pod that is being deleted',
    { home: homePod({ metadata: { deletionTimestamp: NOW }, status: RUNNING }), kept: true },
    { do: 'finish' },
  ],
  ['without any', { home: undefined, kept: true }, { do: 'collect', isInTheWay: false }],
])('%s', (_what, given, expected) => {
  expect(decide(situation({ remote, ...given }))).toMatchObject(expected);
});
