import { expect, test } from '@jest/globals';
import type { ClusterMode, ClusterModeStatus, TetherSpec } from '../../../../src/api/cluster-mode.ts';
import { forwardingOf } from '../../../../src/api/cluster-mode.ts';
import {
  decideMode,
  type ModeFacts,
  type OtherCluster,
  takingBackMs,
} from '../../../../src/peering/mode/decide.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const SECOND = 1000;

const mode = (tether?: TetherSpec, status?: ClusterModeStatus): ClusterMode => ({
  metadata: { name: 'cluster', uid: 'u', resourceVersion: '1', creationTimestamp: '', generation: 3 },
  spec: { ...(tether && { tether }) },
  ...(status && { status }),
});
const company: OtherCluster = {
  clusterID: 'company-id',
  isLinked: true,
  outgoing: { phase: 'Established' },
  incoming: { phase: 'Established' },
  nodes: ['company'],
  isDevice: false,
};
const decided = (facts: Partial<ModeFacts> & Pick<ModeFacts, 'mode'>): ReturnType<typeof decideMode> =>
  decideMode({ own: 'own-id', other: company, obstacles: [], nowMs: NOW, ...facts });
const spec = { cluster: 'company', lostAfterSeconds: 60 };
const { status: tethered } = decided({ mode: mode(spec) });
const away = { ...company, isLinked: false };
const wordsOf = ({ status }: ReturnType<typeof decideMode>): string => status.conditions?.[0]?.message ?? '';

test('it is tethered once both directions are in use, and not before', () => {
  expect(tethered).toMatchObject({ mode: 'Tethered', phase: 'Tethered', nodes: ['company'] });
  for (const half of ['outgoing', 'incoming'] as const) {
    const other = { ...company, [half]: { phase: 'Accepted' as const } };
    expect(decided({ mode: mode(spec), other }).status).toMatchObject({
      mode: 'Autonomous',
      phase: 'Entering',
    });
  }
  expect(decided({ mode: mode(spec), other: away }).status.mode).toBe('Autonomous');
});

test.each([
  ['a cluster that nobody knows', { other: undefined }, 'ClusterUnknown'],
  ['itself', { own: 'company-id' }, 'Ourselves'],
  ['one that is tethered to it', { other: { ...company, isDevice: true } }, 'PeeringInTheWay'],
  ['one while it offers to another', { obstacles: [{ clusterID: 'x', name: 'paris' }] }, 'PeeringInTheWay'],
])('it is not tethered to %s, and asks nobody', (_what, facts, reason) => {
  const { status } = decided({ mode: mode(spec), ...facts });
  expect(status).toMatchObject({ mode: 'Autonomous', phase: 'Refused' });
  expect(status.tether).toBeUndefined();
  expect(status.conditions?.[0]?.reason).toBe(reason);
});

test('an obstacle comes with the command that ends it', () => {
  const obstacles = [{ clusterID: 'x', name: 'paris' }];
  expect(wordsOf(decided({ mode: mode(spec), obstacles }))).toContain('tributary unpeer paris --incoming');
});

test('who asks while it is tethered does not end that', () => {
  const obstacles = [{ clusterID: 'x', name: 'paris' }];
  expect(decided({ mode: mode(spec, tethered), obstacles }).status.mode).toBe('Tethered');
});

test('contact that is lost for too long gives control back, and contact takes it again', () => {
  const first = decided({ mode: mode(spec, tethered), other: away });
  expect(first.status.mode).toBe('Tethered');
  expect(first.againMs).toBe(60 * SECOND);
  const just = decided({ mode: mode(spec, first.status), other: away, nowMs: NOW + 59 * SECOND });
  expect(just.status.mode).toBe('Tethered');
  const lost = decided({ mode: mode(spec, just.status), other: away, nowMs: NOW + 60 * SECOND });
  expect(lost.status).toMatchObject({ mode: 'Autonomous', phase: 'Lost', nodes: ['company'] });
  const back = decided({ mode: mode(spec, lost.status), nowMs: NOW + 61 * SECOND });
  expect(back.status.mode).toBe('Tethered');
  expect(back.status.contactLost).toBeUndefined();
  const alone = { ...spec, afterLoss: 'Autonomous' as const };
  expect(decided({ mode: mode(alone, lost.status) }).status).toMatchObject({
    mode: 'Autonomous',
    phase: 'Lost',
  });
});

test('a clock that was set back does not put off the loss for ever', () => {
  const status = { ...tethered, contactLost: '2026-06-02T00:00:00Z' };
  const { status: next } = decided({ mode: mode(spec, status), other: away });
  expect(next.contactLost).toBe('2026-06-01T12:00:00Z');
});

test('the other cluster may end it', () => {
  const other = { ...company, outgoing: { phase: 'Denied' as const, message: 'enough' } };
  const { status } = decided({ mode: mode(spec, tethered), other });
  expect(status).toMatchObject({ mode: 'Autonomous', phase: 'Refused' });
});

test('without a tether in the spec it is autonomous at once, linked or not, until nothing is left', () => {
  for (const other of [company, away]) {
    const { status } = decided({ mode: mode(undefined, tethered), other });
    expect(status).toMatchObject({
      mode: 'Autonomous',
      phase: 'Ending',
      tether: { clusterID: 'company-id' },
    });
  }
  const over = { ...company, outgoing: { phase: 'None' as const }, incoming: { phase: 'None' as const } };
  const { status } = decided({ mode: mode(undefined, tethered), other: over });
  expect(status).toMatchObject({ mode: 'Autonomous', phase: 'Autonomous' });
  expect(status.tether).toBeUndefined();
});

test('a cluster whose ForeignCluster says not to peer is not waited for', () => {
  const disabled = ['outgoing', 'incoming'] as const;
  const decision = decided({ mode: mode(spec), other: { ...away, disabled } });
  expect(decision.status).toMatchObject({ mode: 'Autonomous', phase: 'Refused' });
  expect(decision.status.conditions?.[0]?.reason).toBe('Disabled');
  expect(wordsOf(decision)).toMatch(
    /says outgoing: Disabled and incoming: Disabled; .*tributary tether company/,
  );
});

test('a cluster that asks for a token is not waited for: only a person can bring one', () => {
  const other = { ...company, outgoing: { phase: 'Pending' as const, reason: 'TokenRequired' } };
  const decision = decided({ mode: mode(spec), other });
  expect(decision.status).toMatchObject({ phase: 'Refused' });
  expect(wordsOf(decision)).toMatch(/there with tributary token create, .*tether company --token -/);
});

test('what is waited for is not why something was agreed on', () => {
  const agreed = { phase: 'Accepted' as const, message: 'SharingPolicy devices lets it in by itself' };
  for (const half of ['outgoing', 'incoming'] as const) {
    expect(wordsOf(decided({ mode: mode(spec), other: { ...company, [half]: agreed } }))).not.toMatch(
      /policy/i,
    );
  }
  const inUse = { phase: 'Established' as const, message: agreed.message };
  for (const outgoing of [inUse, { phase: 'None' as const }]) {
    const other = { ...company, outgoing, incoming: inUse };
    const words = wordsOf(decided({ mode: mode(undefined, tethered), other }));
    expect(words).toMatch(/is being removed: /);
    expect(words).not.toMatch(/policy/i);
  }
});

test('a ClusterMode that is made anew knows by the other cluster what has still to end', () => {
  const { status } = decided({ mode: mode(undefined) });
  expect(status).toMatchObject({ phase: 'Ending', tether: { clusterID: 'company-id' } });
});

test.each([
  ['Revoked', 'Entering'],
  ['Withdrawn', 'Entering'],
  ['TokenUsed', 'Refused'],
])('a no over there because of %s means %s', (reason, phase) => {
  const other = { ...company, outgoing: { phase: 'Denied' as const, reason, message: 'why' } };
  expect(decided({ mode: mode(spec), other }).status.phase).toBe(phase);
});

test('a peering that others want as well is not waited for', () => {
  const ended = mode(undefined, tethered);
  const apart = { ...company, isUsedApart: true, isLentApart: true };
  expect(decided({ mode: ended, other: apart }).status).toMatchObject({ phase: 'Autonomous' });
  for (const other of [
    { ...apart, isUsedApart: false },
    { ...apart, isLentApart: false },
    { ...apart, outgoing: { phase: 'Ending' as const } },
    { ...apart, incoming: { phase: 'Ending' as const } },
  ]) {
    expect(decided({ mode: ended, other }).status).toMatchObject({ phase: 'Ending' });
  }
});

test('the other cluster is let in until what was forwarded is home, as long as it can be heard', () => {
  const facts = { own: 'own-id', obstacles: [], nowMs: NOW, mode: mode(undefined, tethered) };
  const { status } = decideMode({ ...facts, other: company });
  const apart = { ...company, isUsedApart: true };
  expect(takingBackMs(status, { ...facts, other: company })).toBe(5 * SECOND);
  expect(takingBackMs(status, { ...facts, other: apart, hasForwarded: true })).toBe(5 * SECOND);
  expect(takingBackMs(status, { ...facts, other: apart, hasForwarded: false })).toBeUndefined();
  for (const [silent, left] of [
    [28, 2],
    [30, undefined],
  ]) {
    const silentMs = (silent ?? 0) * SECOND;
    expect(takingBackMs(status, { ...facts, other: away, silentMs })).toBe(left && left * SECOND);
  }
});

test('a silence that outlasts the peering brings home what was forwarded, and is not taken for a refusal', () => {
  const lost = {
    ...tethered,
    mode: 'Autonomous',
    phase: 'Lost',
    contactLost: '2026-05-30T12:00:00Z',
  } as const;
  const over = { ...company, outgoing: { phase: 'Ending' as const } };
  const { status } = decided({ mode: mode(spec, lost), other: { ...over, isLinked: false } });
  expect(status).toMatchObject({ mode: 'Autonomous', phase: 'Lost' });
  expect(status.nodes).toBeUndefined();
  expect(forwardingOf(mode(spec, status))).toBeUndefined();
  expect(decided({ mode: mode(spec, status), other: over }).status.phase).toBe('Entering');
  expect(decided({ mode: mode(spec, { ...status, phase: 'Entering' }) }).status.phase).toBe('Tethered');
});

test('whatever it was, and whatever is said, the mode is one of two and its phase fits', () => {
  const phases = ['None', 'Pending', 'Offered', 'Accepted', 'Established', 'Denied', 'Ending'] as const;
  const lost = { ...tethered, mode: 'Autonomous' as const, phase: 'Lost' as const };
  const others = phases.flatMap((outgoing) =>
    phases.flatMap((incoming) =>
      [true, false].map((isLinked) => ({
        ...company,
        isLinked,
        outgoing: { phase: outgoing },
        incoming: { phase: incoming },
      })),
    ),
  );
  for (const other of others) {
    for (const [before, wanted] of [undefined, tethered, lost].flatMap((one) => [
      [one, spec] as const,
      [one, undefined] as const,
    ])) {
      const { status } = decided({ mode: mode(wanted, before), other });
      expect(status.mode === 'Tethered').toBe(status.phase === 'Tethered');
      // The same facts again change nothing: a kill before or after the write is the same.
      expect(decided({ mode: mode(wanted, status), other }).status.mode).toBe(status.mode);
    }
  }
});

test('pods are forwarded while tethered, and stay where they are while contact is lost', () => {
  expect(forwardingOf(mode(spec, tethered))).toMatchObject({ podStrategy: 'Remote', nodes: ['company'] });
  const lost = { ...tethered, mode: 'Autonomous' as const, phase: 'Lost' as const };
  expect(forwardingOf(mode(spec, lost))?.podStrategy).toBe('Local');
  expect(forwardingOf(mode(undefined, tethered))).toBeUndefined();
});

test('forwarded pods run here only after the other cluster must have stopped them, and the margin', () => {
  const local = { ...spec, whenLost: 'RunLocally' as const, marginSeconds: 30 };
  const fence = { afterSeconds: 60, stopSeconds: 20 };
  const lost = { ...tethered, mode: 'Autonomous' as const, phase: 'Lost' as const };
  const agreed = { ...lost, tether: { clusterID: 'company-id', fence } };
  const at = (stoppedInMs: number, status: ClusterModeStatus = agreed): ReturnType<typeof decideMode> =>
    decided({ mode: mode(local, status), other: away, stoppedInMs });
  expect(at(20 * SECOND).status.runsLocallySince).toBeUndefined();
  expect(at(20 * SECOND).againMs).toBe(50 * SECOND);
  expect(at(-29 * SECOND).status.runsLocallySince).toBeUndefined();
  const { status } = at(-30 * SECOND);
  expect(status.runsLocallySince).toBe('2026-06-01T12:00:00Z');
  expect(forwardingOf(mode(local, status))?.comesHome).toBe(true);
  // It stays so whatever is counted later, and ends with contact.
  expect(at(Infinity, status).status.runsLocallySince).toBe(status.runsLocallySince);
  expect(decided({ mode: mode(local, status) }).status.runsLocallySince).toBeUndefined();
});

test.each([
  ['nothing was agreed on', { whenLost: 'RunLocally' as const }, undefined],
  ['they are to stay', {}, { afterSeconds: 60, stopSeconds: 20 }],
])('where %s, forwarded pods stay over there', (_what, more, fence) => {
  const lost = { ...tethered, mode: 'Autonomous' as const, phase: 'Lost' as const };
  const status = { ...lost, tether: { clusterID: 'company-id', ...(fence && { fence }) } };
  const decision = decided({ mode: mode({ ...spec, ...more }, status), other: away, stoppedInMs: -Infinity });
  expect(decision.status.runsLocallySince).toBeUndefined();
  expect(wordsOf(decision)).toContain('stays at company');
});
