import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { pods } from '../../../../src/api/resources.ts';
import type { Pod, PodCondition } from '../../../../src/api/wire.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { AdmittedPods } from '../../../../src/offloading/admitted/admitted-pods.ts';
import { newsOfAdmitted } from '../../../../src/offloading/admitted/decide.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const LARGE = { 'tributary.dev/too-large-for': 'milan: cpu 20, one node lends 16' };
const WRONG = { 'tributary.dev/placement': 'Weich' };
const UNSCHEDULABLE: PodCondition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' };

const pod = (annotations: Record<string, string>, conditions: PodCondition[] = [], nodeName = ''): Pod => ({
  metadata: { name: 'web', uid: 'p', resourceVersion: '', creationTimestamp: '', annotations },
  spec: { containers: [], ...(nodeName !== '' && { nodeName }) },
  status: { phase: 'Pending', conditions },
});
const reasonsOf = (one: Pod): string[] => newsOfAdmitted(one).news.map(({ reason }) => reason);

describe('what is told', () => {
  test.each<[string, Pod, string[], boolean]>([
    ['nothing of any other pod', pod({}, [UNSCHEDULABLE]), [], false],
    ['an unknown placement', pod(WRONG), ['PlacementUnknown'], false],
    ['also on a node', pod(WRONG, [], 'n1'), ['PlacementUnknown'], false],
    ['no placement in another letter case', pod({ 'tributary.dev/placement': 'soft' }), [], false],
    ['too large, once the scheduler has said so', pod(LARGE, [UNSCHEDULABLE]), ['TooLargeForNodes'], false],
    ['too large, before that', pod(LARGE), [], true],
    ['too large, but it has found a node', pod(LARGE, [], 'n1'), [], false],
  ])('%s', (_what, one, reasons, isOpen) => {
    expect(reasonsOf(one)).toEqual(reasons);
    expect(newsOfAdmitted(one).isOpen).toBe(isOpen);
  });

  test('what holds instead, and for which nodes it is too large', () => {
    const ofNamespace = { ...WRONG, 'tributary.dev/placement-of-namespace': 'Soft' };
    const message = (one: Pod): string | undefined => newsOfAdmitted(one).news[0]?.message;
    expect(message(pod(ofNamespace))).toContain('"Weich" is none of Propagate, Soft, Hard');
    expect(message(pod(ofNamespace))).toContain('Soft holds, as its namespace says');
    expect(message(pod(WRONG))).toContain('Propagate holds, which is the default');
    expect(message(pod(LARGE, [UNSCHEDULABLE]))).toContain('(milan: cpu 20, one node lends 16)');
  });
});

describe('in a cluster', () => {
  let clock: FakeClock;
  let api: FakeApi;
  let client: HttpClient;
  let admitted: AdmittedPods;
  let told: string[];
  const lists = (): number =>
    api.log.filter((line) => line.startsWith('GET') && line.includes('pods')).length;

  beforeEach(() => {
    clock = new FakeClock();
    api = new FakeApi({ clock, types: [], tokens: new Set(['token']) });
    client = api.client({ token: async () => 'token' });
    told = [];
    const events = {
      event: (subject: { metadata: { name: string } }, _type: string, reason: string) =>
        void told.push(`${subject.metadata.name} ${reason}`),
    };
    admitted = new AdmittedPods({ client, clock, log: silentLogger, events });
    void admitted.component().start?.(new AbortController().signal);
  });
  afterEach(async () => {
    await clock.during('it stops', Promise.resolve(admitted.component().stop?.()));
    await client.close();
  });

  async function store(name: string, { metadata, spec, status }: Pod): Promise<void> {
    const { annotations = {} } = metadata;
    await client.create(pods, {
      metadata: { namespace: 'shop', name, annotations },
      ...(spec && { spec }),
      ...(status && { status }),
    });
    const body = { status };
    await client.patch(pods, { namespace: 'shop', name }, { type: 'merge', body }, { subresource: 'status' });
  }

  test('each pod is told of once, also one that the scheduler looks at late', async () => {
    await store('wrong', pod(WRONG, [], 'n1'));
    await store('late', pod(LARGE));
    admitted.letIn('shop', 'any');
    admitted.letIn('shop', 'waiting');
    await clock.advance(3_000);
    expect(told).toEqual(['wrong PlacementUnknown']);
    const body = { status: { conditions: [UNSCHEDULABLE] } };
    await client.patch(
      pods,
      { namespace: 'shop', name: 'late' },
      { type: 'merge', body },
      { subresource: 'status' },
    );
    await clock.advance(5_000);
    expect(told).toEqual(['wrong PlacementUnknown', 'late TooLargeForNodes']);
    await clock.advance(60_000);
    expect(told).toHaveLength(2);
    const before = lists();
    await clock.advance(600_000);
    expect(lists()).toBe(before);
  });

  test('many pods one after the other cost a list in five seconds', async () => {
    for (let second = 0; second < 30; second++) {
      admitted.letIn('shop', 'waiting');
      await clock.advance(1_000);
    }
    expect(lists()).toBeLessThanOrEqual(7);
  });
});
