import { expect, test } from '@jest/globals';

import { Listeners, Subscriptions } from '../../../src/lib/listeners.ts';

test('each is told in turn, until it ends its subscription', () => {
  const heard: string[] = [];
  const listeners = new Listeners<[name: string]>();
  const { add } = listeners;
  const end = add((name) => heard.push(`first ${name}`));
  add((name) => heard.push(`second ${name}`));
  listeners.tell('milan');
  end();
  listeners.tell('paris');
  expect(heard).toEqual(['first milan', 'second milan', 'second paris']);
});

test('subscriptions end once, all together', () => {
  const ended: string[] = [];
  const subscriptions = new Subscriptions();
  subscriptions.add(
    () => ended.push('a'),
    () => ended.push('b'),
  );
  subscriptions.end();
  subscriptions.end();
  subscriptions.add(() => ended.push('c'));
  subscriptions.end();
  expect(ended).toEqual(['a', 'b', 'c']);
});
