import { expect, test } from '@jest/globals';
import type { Node, Pod } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { TokenBucket } from '../../../../src/lib/token-bucket.ts';
import { type JournalEntry, entryOf } from '../../../../src/hosting/guardian/journal-entry.ts';
import type { JournalStore } from '../../../../src/hosting/guardian/journal-store.ts';
import { Rounds } from '../../../../src/hosting/guardian/rounds.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { podOf, TERMINATING } from './support.ts';

const SILENT = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } } as unknown as Node;

test('of a pod that is not in the journal any more it is forgotten since when it is on its way out', async () => {
  const clock = new FakeClock();
  const pod: Pod = podOf({
    metadata: { ...TERMINATING, annotations: { 'tributary.dev/when-lost': 'Replace' } },
  });
  const deleted: string[] = [];
  const client = {
    get: async ({ plural }: { plural: string }) => (plural === 'nodes' ? SILENT : pod),
    delete: async (_type: unknown, { name }: { name: string }) => deleted.push(name),
  } as unknown as KubeClient;
  const entries = new Map<string, JournalEntry>();
  const rounds = new Rounds({
    client,
    clock,
    log: silentLogger,
    events: { event: () => undefined },
    namespace: { metadata: { name: 'rome-shop', uid: 'n' } } as Pod,
    store: { entries } as unknown as JournalStore,
    pods: { get: () => pod, relist: () => undefined },
    isAway: () => true,
    isStillAway: async () => true,
    logsOf: () => undefined,
    budget: new TokenBucket({ clock, burst: 1, perSecond: 1 }),
  });
  const round = async (): Promise<number> => rounds.round(new AbortController().signal);
  const entry = entryOf(pod, undefined, false) as JournalEntry;
  entries.set('web', entry);
  expect(await round()).toBe(60_000);
  entries.clear();
  await round();
  await clock.advance(60_000);
  entries.set('web', entry);
  expect(await round()).toBe(60_000);
  expect(deleted).toEqual([]);
  await clock.advance(60_000);
  await round();
  expect(deleted).toEqual(['web']);
});
