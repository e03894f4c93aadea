/** docs/reference/reasons.md has each reason that the code writes, and no other event. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { EVENT_TEXTS } from '../../../src/api/reasons/event-texts.ts';
import { reasonsDocument } from '../../../tools/generate/reasons-document.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const sources = new Map(
  globSync('src/**/*.ts', { cwd: root })
    .toSorted()
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const written = [...sources].filter(([path]) => !/^src\/api\/(reasons|crd)\//.test(path));
const code = written.map(([, text]) => text).join('\n');

const rows = [...reasonsDocument().matchAll(/^\| `(\w+)` \|(.*)\|$/gm)];
const told = new Set(rows.map(([, reason]) => reason));

/** Words of Kubernetes, written as it writes them. */
const OF_KUBERNETES = [
  // Conditions and states of pods and containers, as of a kubelet.
  'ContainerStatusUnknown',
  'ContainersNotInitialized',
  'ContainersNotReady',
  'CreateContainerConfigError',
  'Deferred',
  'Infeasible',
  'PodFailed',
  'ReadinessGatesNotReady',
  'StartError',
  // What an API server answers, and our webhook as it does.
  'TooManyRequests',
];
/** What the tools on a host refuse, in a file between two programs: people see `HostRefused`, `WireGuardNotRunning`. */
const OF_HOSTS = ['NoWireGuard', 'Refused'];

describe('a reason', () => {
  const lists = globSync('src/api/*.ts', { cwd: root }).filter((path) =>
    /export const \w+_REASONS = /.test(sources.get(path) ?? ''),
  );

  test.each(lists.toSorted())('of a list in %s is explained', async (path) => {
    const module = (await import(join(root, path))) as Record<string, unknown>;
    const reasons = Object.entries(module).flatMap(([name, list]) =>
      name.endsWith('_REASONS') ? Object.values(list as Record<string, string>) : [],
    );
    expect(reasons.length).toBeGreaterThan(0);
    expect(reasons.filter((reason) => !told.has(reason))).toEqual([]);
  });

  test('that is written as a word is explained', () => {
    const found = [...code.matchAll(/\breason(?::| =|: string =) '([A-Z]\w+)'/g)].map(([, reason]) => reason);
    const known = new Set([...told, ...OF_KUBERNETES, ...OF_HOSTS]);
    expect(found.length).toBeGreaterThan(10);
    expect([...new Set(found)].filter((reason) => !known.has(reason))).toEqual([]);
    expect([...OF_KUBERNETES, ...OF_HOSTS].filter((reason) => !found.includes(reason))).toEqual([]);
  });

  test('says what it means', () => {
    expect(rows.length).toBeGreaterThan(150);
    const silent = rows.filter(([, , cells = '']) => !/[a-z`].*\. \|/.test(cells));
    expect(silent.map(([, reason]) => reason)).toEqual([]);
  });
});

describe('an event', () => {
  test('is written somewhere', () => {
    const reasons = Object.values(EVENT_TEXTS).flatMap((texts) => Object.keys(texts));
    // `FailedToReadMandatorySecret` and its like are put together.
    const isPutTogether = (reason: string): boolean => /(Mandatory|Optional)(ConfigMap|Secret)/.test(reason);
    expect(code).toContain('`FailedToRead${weight}${kind}`');
    const unused = reasons.filter((reason) => !isPutTogether(reason) && !code.includes(`'${reason}'`));
    expect(unused).toEqual([]);
  });

  test('of a free reason is one that another program has written', () => {
    const casts = written.filter(([, text]) => /\bas (EventReason|RelayedReason)\b/.test(text));
    expect(casts.map(([path]) => path)).toEqual(['src/kube/events.ts']);
    const relays = written.filter(([, text]) => /\brelayed\(/.test(text));
    expect(relays.map(([path]) => path)).toEqual(['src/provider/storage/storage.ts']);
  });
});
