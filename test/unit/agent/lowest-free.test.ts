import { expect, test } from '@jest/globals';
import { LowestFree } from '../../../src/agent/lowest-free.ts';

test('each name has the lowest number that no other has, keeps it, and gives it back', () => {
  const ports = new LowestFree(10_250, 10_252);
  expect(['a', 'b', 'c', 'a'].map((name) => ports.take(name))).toEqual([10_250, 10_251, 10_252, 10_250]);
  expect(() => ports.take('d')).toThrow('no port left from 10250 on for d');
  ports.give('b');
  expect(ports.take('d')).toBe(10_251);
});
