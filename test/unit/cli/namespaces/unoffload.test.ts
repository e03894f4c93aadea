import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { NamespaceOffloadingStatus } from '../../../../src/api/namespace-offloading.ts';
import { namespaces, pods } from '../../../../src/api/resources.ts';
import { unoffloadCommand } from '../../../../src/cli/namespaces/unoffload.ts';
import { CliWorld } from '../support/cli-world.ts';
import { KEY, offloadingsOf, ORIGIN } from './support/offloading.ts';

const LABEL = 'tributary.dev/offload';

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.seed(namespaces, { metadata: { name: 'shop' } });
});
afterEach(async () => world.stop());

const { stored, existing, answers } = offloadingsOf(() => world);

describe('unoffload', () => {
  const labels = (): unknown => world.api.storage.get('namespaces', 'shop')?.metadata.labels ?? {};
  const label = (value: string): void => {
    const found = world.api.storage.get('namespaces', 'shop');
    if (found === undefined) throw new Error('no namespace');
    world.api.storage.update('namespaces', {
      ...found,
      metadata: { ...found.metadata, labels: { [LABEL]: value } },
    });
  };
  /** The role: the object goes when its pods have come home. */
  const comesHome = (): void => {
    world.api.storage.subscribe(({ resource, current }) => {
      if (resource !== KEY || current?.metadata.deletionTimestamp === undefined) return;
      queueMicrotask(() => world.api.storage.remove(KEY, 'shop/offloading'));
    });
  };

  test('deletes what a person has made, and waits until it is gone', async () => {
    existing({}, { finalizers: ['tributary.dev/offloading'] });
    comesHome();
    const { code, out, err } = await world.run(unoffloadCommand, 'shop');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^NamespaceOffloading shop\/offloading deleted\n/);
    expect(out).toMatch(
      /Namespace shop is at home; nothing of it is left in foreign clusters \([\d.]+ s\)\n$/,
    );
    expect(stored()).toBeUndefined();
  });

  test('says what is waited for, and that it goes on after the time', async () => {
    existing({}, { finalizers: ['tributary.dev/offloading'] });
    const message = 'pods come home; waits for 1 of them, one is web (budget)';
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Ending', message }];
    answers({ conditions } as unknown as NamespaceOffloadingStatus);
    const { code, out, err } = await world.run(unoffloadCommand, 'shop --timeout 3s');
    expect(code).toBe(1);
    expect(out).toContain(`  Ending: ${message}\n`);
    expect(err).toContain(
      `Namespace shop is not all at home after 3 s: Ending: ${message}. The role cluster goes on.`,
    );
  });

  test('takes a label back rather than an object that would be made again', async () => {
    label('true');
    existing({}, { labels: { [ORIGIN]: 'label' } });
    world.api.storage.subscribe(({ resource, current }) => {
      if (resource === 'namespaces' && current !== undefined)
        queueMicrotask(() => world.api.storage.remove(KEY, 'shop/offloading'));
    });
    const { code, out } = await world.run(unoffloadCommand, 'shop');
    expect(code).toBe(0);
    expect(out).toContain('Label tributary.dev/offload of namespace shop removed\n');
    expect(labels()).toEqual({});
    expect(world.api.count(/^DELETE/)).toBe(0);
  });

  test("keeps a namespace home that the operator's selector would offload again", async () => {
    existing({}, { labels: { [ORIGIN]: 'selector' } });
    const { code } = await world.run(unoffloadCommand, 'shop --timeout 1s');
    expect(code).toBe(1);
    expect(labels()).toEqual({ [LABEL]: 'false' });
  });

  test('--dry-run writes nothing', async () => {
    label('Remote');
    existing({});
    const { code, out } = await world.run(unoffloadCommand, 'shop --dry-run');
    expect(code).toBe(0);
    expect(out).toBe(
      'Label tributary.dev/offload of namespace shop removed (not done: --dry-run)\n' +
        'NamespaceOffloading shop/offloading deleted (not done: --dry-run)\n',
    );
    expect(labels()).toEqual({ [LABEL]: 'Remote' });
    expect(stored()).toBeDefined();
  });

  describe('pods whose own template sends them to virtual nodes', () => {
    const ADVICE =
      'hello-6f-a, hello-6f-b: take the nodeAffinity tributary.dev/virtual-node and the toleration of tributary.dev/virtual-node out of the pod template of Deployment hello';
    const hello = (name: string, status: object): void =>
      void world.seed(pods, {
        metadata: {
          namespace: 'shop',
          name,
          labels: { 'pod-template-hash': '6f' },
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'hello-6f', uid: 'r', controller: true },
          ],
        },
        spec: {
          containers: [{ name: 'a' }],
          tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  {
                    matchExpressions: [
                      { key: 'tributary.dev/virtual-node', operator: 'In', values: ['milan'] },
                    ],
                  },
                ],
              },
            },
          },
        },
        status,
      });
    beforeEach(() => {
      hello('hello-6f-a', { phase: 'Pending' });
      hello('hello-6f-b', {
        phase: 'Pending',
        conditions: [{ type: 'tributary.dev/Offloaded', status: 'False', reason: 'NamespaceNotOffloaded' }],
      });
    });

    test('are named with what to change, and the namespace is at home', async () => {
      existing({}, { finalizers: ['tributary.dev/offloading'] });
      comesHome();
      const { code, out, err } = await world.run(unoffloadCommand, 'shop');
      expect(code).toBe(1);
      expect(out).toMatch(/nothing of it is left in foreign clusters \([\d.]+ s\)\n$/);
      expect(err).toContain(`2 pod(s) wait for a virtual node and do not run`);
      expect(err).toContain(`  ${ADVICE}\n`);
    });

    test('also while it is waited for, and when it is over', async () => {
      existing({}, { finalizers: ['tributary.dev/offloading'] });
      const waiting = await world.run(unoffloadCommand, 'shop --timeout 2s');
      expect(waiting.err.indexOf(ADVICE)).toBeLessThan(waiting.err.indexOf('is not all at home after 2 s'));
      world.api.storage.remove(KEY, 'shop/offloading');
      const { code, out, err } = await world.run(unoffloadCommand, 'shop');
      expect([code, out]).toEqual([1, 'Namespace shop is not offloaded\n']);
      expect(err).toContain(ADVICE);
    });
  });

  test('a namespace that is at home is no failure', async () => {
    const { code, out } = await world.run(unoffloadCommand, 'shop');
    expect([code, out]).toEqual([0, 'Namespace shop is not offloaded\n']);
  });

  test('what a tether has forwarded is ended by the tether', async () => {
    existing({}, { labels: { [ORIGIN]: 'tether' } });
    const { code, err } = await world.run(unoffloadCommand, 'shop');
    expect([code, err]).toEqual([
      1,
      'the tether of this cluster has forwarded shop; end it with: tributary untether\n',
    ]);
  });

  test.each([
    ['', 2, 'NAMESPACE is missing'],
    ['tributary-system', 2, 'holds parts of the cluster itself'],
    ['none', 1, 'there is no namespace "none"'],
    ['shop --timeout 0s', 2, '--timeout: "0s" is not a duration'],
  ])('%s: %i', async (line, code, message) => {
    const outcome = await world.run(unoffloadCommand, line);
    expect(outcome.code).toBe(code);
    expect(outcome.err).toContain(message);
  });
});
