import { describe, expect, test } from '@jest/globals';
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, CONDITION_OFFLOADED } from '../../../../src/api/names.ts';
import type { ContainerStatus, Pod, PodStatus } from '../../../../src/api/wire.ts';
import { ANNOTATION_RESULT_LOGS } from '../../../../src/api/names.ts';
import { resultLogsText } from '../../../../src/api/result-logs.ts';
import { keptLogOf, recreatedOf } from '../../../../src/provider/forge/made-anew.ts';
import { forgeStatus } from '../../../../src/provider/forge/status.ts';
import { decide } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING, situation } from '../support/pods.ts';
import { fc } from '../../../support/property.ts';

const LATER = '2026-01-01T00:10:00Z';

const container = (parts: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  image: 'web:1',
  imageID: '',
  ready: true,
  restartCount: 0,
  state: { running: { startedAt: NOW } },
  ...parts,
});

function body(annotation: string, status: PodStatus = RUNNING, home: Pod = homePod()): Pod {
  const annotations = { ...remotePod(home).metadata.annotations, [ANNOTATION_RECREATED]: annotation };
  return remotePod(home, { metadata: { uid: 'another', annotations }, status });
}

describe('what the annotation says', () => {
  test.each<[string, string, number, Record<string, number>]>([
    ['what the guardian writes', '{"count":2,"restarts":{"main":3}}', 2, { main: 3 }],
    ['nothing', '', 1, {}],
    ['no JSON', '{', 1, {}],
    ['another shape', '[1]', 1, {}],
    ['null', 'null', 1, {}],
    ['numbers that are none', '{"count":"2","restarts":{"a":-1,"b":1.5,"c":null,"d":"3"}}', 1, {}],
    ['numbers without end', '{"count":1e308,"restarts":{"main":9007199254740993}}', 1, {}],
    ['more than ever happens', '{"count":2000000,"restarts":{"main":2147483647}}', 1e6, { main: 1e6 }],
    ['zero', '{"count":0,"restarts":{"main":0}}', 1, { main: 0 }],
    ['too much text', `{"count":2,"x":"${'y'.repeat(70_000)}"}`, 1, {}],
  ])('%s', (_name, text, count, restarts) => {
    const recreated = recreatedOf(body(text));
    expect(recreated?.count).toBe(count);
    expect(Object.fromEntries(recreated?.restarts ?? [])).toEqual(restarts);
  });

  test('names are names, also those that objects have by themselves', () => {
    const restarts = recreatedOf(body('{"count":1,"restarts":{"__proto__":4,"constructor":5}}'))?.restarts;
    expect([...(restarts ?? [])]).toEqual([
      ['__proto__', 4],
      ['constructor', 5],
    ]);
    expect(recreatedOf(body('{"__proto__":{"count":7}}'))?.count).toBe(1);
  });

  test('a pod that is still ours', () => {
    expect(recreatedOf(remotePod(homePod()))).toBeUndefined();
  });

  test('any text gives a status with counts that the API server takes', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        fc.integer({ min: 0, max: 2 ** 31 - 1 }),
        (text, restartCount) => {
          const remote = body(text, { ...RUNNING, containerStatuses: [container({ restartCount })] });
          const [shown] = forgeStatus(homePod(), remote, CONTEXT, NOW).containerStatuses ?? [];
          const count = shown?.restartCount ?? -1;
          expect(Number.isSafeInteger(count) && count >= restartCount && count < 2 ** 31).toBe(true);
        },
      ),
    );
  });
});

describe('the status of the home pod', () => {
  const ran = homePod({ status: { ...RUNNING, containerStatuses: [container({ restartCount: 3 })] } });

  test('goes on: restarts are added up, the start stays, the address is the new one', () => {
    const remote = body('{"count":2,"restarts":{"main":3}}', {
      ...RUNNING,
      startTime: LATER,
      podIP: '10.0.0.9',
      podIPs: [{ ip: '10.0.0.9' }],
      containerStatuses: [container({ restartCount: 1, state: { running: { startedAt: LATER } } })],
    });
    const status = forgeStatus(ran, remote, CONTEXT, LATER);
    expect(status).toMatchObject({
      phase: 'Running',
      startTime: NOW,
      podIP: '10.0.0.9',
      containerStatuses: [{ restartCount: 4, state: { running: { startedAt: LATER } } }],
    });
    expect(status.conditions).toContainEqual({
      type: 'tributary.dev/Recreated',
      status: 'True',
      reason: 'Recreated',
      message: 'made anew by the provider while this cluster was away (2 times)',
      lastTransitionTime: LATER,
    });
    const action = decide(situation({ home: ran, remote, now: LATER }));
    expect(action).toMatchObject({ do: 'writeStatus', news: { reason: 'Recreated' } });
    // And then it is at rest.
    const shown = { ...ran, status };
    expect(decide(situation({ home: shown, remote, now: '2026-01-01T00:20:00Z' }))).toEqual({
      do: 'nothing',
    });
  });

  test('is told once for each time', () => {
    const first = body('{"count":1,"restarts":{}}');
    const shown = { ...ran, status: forgeStatus(ran, first, CONTEXT, NOW) };
    const again = decide(situation({ home: shown, remote: body('{"count":2,"restarts":{}}'), now: LATER }));
    expect(again).toMatchObject({ news: { message: expect.stringContaining('(2 times)') } });
    const status: PodStatus = { ...RUNNING, podIP: '10.0.0.8', podIPs: [{ ip: '10.0.0.8' }] };
    const other = decide(
      situation({ home: shown, remote: body('{"count":1,"restarts":{}}', status), now: LATER }),
    );
    expect(other).toMatchObject({ do: 'writeStatus' });
    expect(other).not.toHaveProperty('news');
  });

  test('of one that does not run yet shows neither an old address nor that it is ready, and that it has run', () => {
    const remote = body('{"count":1,"restarts":{"main":3}}', { phase: 'Pending' });
    const action = decide(situation({ home: ran, remote }));
    expect(action).toMatchObject({ do: 'writeStatus', status: { phase: 'Pending', startTime: NOW } });
    const { status } = action as { status: PodStatus };
    expect(status.podIP).toBeUndefined();
    expect(status.conditions?.find(({ type }) => type === 'Ready')).toBeUndefined();
    // Should that one be lost, too: never made by us a second time.
    const lost = decide(situation({ home: { ...ran, status } }));
    expect(lost).toMatchObject({ do: 'confirmLost' });
  });

  test.each<['Always' | 'OnFailure' | 'Never', number, boolean]>([
    ['Always', 0, false],
    ['Always', 1, false],
    ['OnFailure', 1, false],
    ['OnFailure', 0, true],
    ['Never', 1, true],
  ])('restartPolicy %s, ended with %d: the first end stands: %s', (restartPolicy, exitCode, stands) => {
    const ended = container({ state: { terminated: { exitCode } }, ready: false });
    const spec = { restartPolicy, initContainers: [{ name: 'first', image: 'web:1' }] };
    const home = homePod({
      spec,
      status: {
        ...RUNNING,
        containerStatuses: [ended],
        initContainerStatuses: [{ ...ended, name: 'first' }],
      },
    });
    const alive = {
      ...RUNNING,
      containerStatuses: [container()],
      initContainerStatuses: [container({ name: 'first' })],
    };
    const status = forgeStatus(home, body('{"count":1,"restarts":{}}', alive, home), CONTEXT, NOW);
    const expected = stands ? { terminated: { exitCode } } : { running: { startedAt: NOW } };
    expect(status.containerStatuses).toMatchObject([{ state: expected }]);
    expect(status.initContainerStatuses).toMatchObject([{ state: expected }]);
  });

  const rule = (operator: string, values: number[]): object => ({
    restartPolicy: 'Never',
    restartPolicyRules: [{ action: 'Restart', exitCodes: { operator, values } }],
  });
  test.each<[string, object, boolean]>([
    ['Always', { restartPolicy: 'Always' }, false],
    ['OnFailure', { restartPolicy: 'OnFailure' }, false],
    ['Never', { restartPolicy: 'Never' }, true],
    ['a rule for its exit code', rule('In', [1, 7]), false],
    ['a rule for others', rule('In', [2]), true],
    ['a rule for all but others', rule('NotIn', [2]), false],
  ])(
    'a container of a pod that is never restarted has its own policy, %s: the end stands: %s',
    (_what, own, stands) => {
      const ended = container({ state: { terminated: { exitCode: 1 } }, ready: false });
      const home = homePod({
        spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'web:1', ...own }] },
        status: { ...RUNNING, containerStatuses: [ended] },
      });
      const alive = { ...RUNNING, containerStatuses: [container()] };
      const status = forgeStatus(home, body('{"count":1,"restarts":{}}', alive, home), CONTEXT, NOW);
      const expected = stands ? { terminated: { exitCode: 1 } } : { running: { startedAt: NOW } };
      expect(status.containerStatuses).toMatchObject([{ state: expected }]);
    },
  );
});

test.each(['OnFailure', 'Never'] as const)(
  'restartPolicy %s: a sidecar that has ended lives again, an init container has ended',
  (restartPolicy) => {
    const names = ['sidecar', 'first'];
    const ended = container({ state: { terminated: { exitCode: 0 } }, ready: false });
    const initContainers = [
      { name: 'sidecar', image: 'web:1', restartPolicy: 'Always' },
      { name: 'first', image: 'web:1' },
    ];
    const initContainerStatuses = names.map((name) => ({ ...ended, name }));
    const home = homePod({
      spec: { restartPolicy, initContainers },
      status: { ...RUNNING, initContainerStatuses },
    });
    const alive = { ...RUNNING, initContainerStatuses: names.map((name) => container({ name })) };
    const status = forgeStatus(home, body('{"count":1,"restarts":{}}', alive, home), CONTEXT, NOW);
    expect(status.initContainerStatuses).toMatchObject([
      { name: 'sidecar', state: { running: { startedAt: NOW } } },
      { name: 'first', state: { terminated: { exitCode: 0 } } },
    ]);
  },
);

describe('a pod that only bears a result', () => {
  const ran = homePod({
    status: { ...RUNNING, containerStatuses: [container()] },
    spec: { restartPolicy: 'Never' },
  });
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'blocked' };
  const result = (status: PodStatus): Pod =>
    remotePod(ran, {
      metadata: {
        uid: 'another',
        annotations: { ...remotePod(ran).metadata.annotations, [ANNOTATION_RESULT]: 'true' },
      },
      spec: { schedulingGates: [{ name: 'tributary.dev/result' }] },
      status: { conditions: [gated], ...status },
    });

  test('and has none yet: nothing is shown, nothing is decided', () => {
    const remote = result({ phase: 'Pending' });
    expect(decide(situation({ home: ran, remote }))).toEqual({ do: 'nothing' });
    const newer = { ...ran, metadata: { ...ran.metadata, generation: 2 } };
    expect(decide(situation({ home: newer, remote }))).toEqual({ do: 'nothing' });
    const failed = { ...ran, status: { ...ran.status, phase: 'Failed' } };
    expect(decide(situation({ home: failed, remote }))).toEqual({ do: 'nothing' });
  });

  test('is shown as any pod that has finished', () => {
    const done = container({ state: { terminated: { exitCode: 0, finishedAt: LATER } }, ready: false });
    const remote = result({ phase: 'Succeeded', startTime: NOW, containerStatuses: [done] });
    const action = decide(situation({ home: ran, remote }));
    expect(action).toMatchObject({
      do: 'writeStatus',
      status: { phase: 'Succeeded', containerStatuses: [{ state: { terminated: { exitCode: 0 } } }] },
    });
    const { status } = action as { status: PodStatus };
    expect(status.conditions?.map(({ type }) => type)).not.toContain(CONDITION_OFFLOADED);
    expect(decide(situation({ home: { ...ran, status }, remote }))).toEqual({ do: 'nothing' });
  });

  test('of which nobody saw the containers end: none of them is shown as running', () => {
    const status = forgeStatus(ran, result({ phase: 'Failed', reason: 'RemotePodLost' }), CONTEXT, NOW);
    expect(status).toMatchObject({
      phase: 'Failed',
      startTime: NOW,
      containerStatuses: [{ ready: false, state: { terminated: { exitCode: 137 } } }],
    });
  });

  test('goes with its home pod', () => {
    const ending = {
      ...ran,
      metadata: { ...ran.metadata, deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 },
    };
    for (const phase of ['Pending', 'Succeeded']) {
      expect(decide(situation({ home: ending, remote: result({ phase }) }))).toMatchObject({
        do: 'deleteRemote',
      });
    }
  });
});

test('a home pod that has run is never begun a second time, whatever its bodies said', () => {
  const text = fc.oneof(fc.constant('{"count":1,"restarts":{}}'), fc.json(), fc.constant(undefined));
  const status = fc.record(
    {
      phase: fc.constantFrom('Pending', 'Running', 'Failed', 'Succeeded', 'Unknown', 'x'),
      startTime: fc.constantFrom(NOW, LATER, 'x'),
      conditions: fc.constantFrom([], [{ type: 'PodScheduled', status: 'False' }]),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.tuple(text, status), { nil: undefined }), { maxLength: 6 }),
      (bodies) => {
        let home = homePod({ status: RUNNING });
        for (const one of bodies) {
          const [annotation, there] = one ?? [undefined, {}];
          const plain = remotePod(home, { status: there as unknown as PodStatus });
          const remote =
            one === undefined
              ? undefined
              : annotation === undefined
                ? plain
                : body(annotation, there as unknown as PodStatus, home);
          const wasFinished = ['Succeeded', 'Failed'].includes(home.status?.phase ?? '');
          const action = decide(situation({ home, ...(remote !== undefined && { remote }) }));
          expect(action.do).not.toBe('create');
          if (action.do !== 'writeStatus') continue;
          expect(wasFinished).toBe(false);
          home = { ...home, status: action.status };
          expect(home.status?.startTime).toBe(NOW);
        }
      },
    ),
  );
});

test('of a result there is the log that was kept with it, else what its container said last', () => {
  const said = { terminated: { exitCode: 1, message: 'disk full' } };
  const ended = container({ state: said });
  const home = { ...homePod(), status: { phase: 'Failed', containerStatuses: [ended] } };
  const gone = (text?: string, name = 'main', of: Pod = home): string => {
    const remote = {
      ...homePod(),
      metadata: {
        ...homePod().metadata,
        annotations: text === undefined ? {} : { [ANNOTATION_RESULT_LOGS]: text },
      },
    };
    const kept = keptLogOf(remote, of, name);
    return 'gone' in kept ? kept.gone : `kept: ${kept.bytes.toString()}`;
  };
  expect(gone()).toMatch(/only its result was kept; .*container "main":\ndisk full$/u);
  expect(gone(undefined, 'other')).toMatch(/only its result was kept$/u);
  expect(gone(undefined, 'main', homePod())).toMatch(/^the logs of pod "[^"]*" are gone/u);
  const text = resultLogsText(new Map([['main', Buffer.from('2026-01-01T00:00:00Z one\n')]]));
  expect(gone(text)).toBe('kept: 2026-01-01T00:00:00Z one\n');
  expect(gone(text, 'other')).toMatch(/only its result was kept$/u);
  // The other cluster may write anything.
  for (const nonsense of ['', '[]', '{"main":1}', '{"main":"%"}', `{"main":"${'A'.repeat(1_000_000)}"}`])
    expect(gone(nonsense)).toMatch(/^the logs of pod/u);
});
