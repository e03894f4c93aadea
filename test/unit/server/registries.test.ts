import { expect, test } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { Registries } from '../../../src/server/registries.ts';

const fill = (registry: Registry, value: number): void => {
  const registers = [registry];
  new Counter({ name: 'writes_total', help: 'h', registers, labelNames: ['kind'] }).inc({ kind: 'x' }, value);
  new Histogram({ name: 'seconds', help: 'h', registers, buckets: [1] }).observe(value);
};

test('one virtual node shows its metrics as they are', async () => {
  const own = new Registry();
  fill(own, 1);
  const registries = new Registries(own);
  expect(await registries.metrics()).toBe(await own.metrics());
});

test('several are told apart by a label, and each family is described once', async () => {
  const own = new Registry();
  new Gauge({ name: 'resident', help: 'h', registers: [own] }).set(7);
  const registries = new Registries(own);
  fill(registries.open('a'), 1);
  fill(registries.open('b'), 3);
  const text = await registries.metrics();
  expect(text).toContain('writes_total{kind="x",virtual_node="a"} 1');
  expect(text).toContain('writes_total{kind="x",virtual_node="b"} 3');
  expect(text).toMatch(/seconds_bucket\{le="1",virtual_node="a"\} 1/);
  expect(text).toMatch(/seconds_bucket\{le="1",virtual_node="b"\} 0/);
  expect(text).toMatch(/^resident 7$/m);
  expect(text.match(/# TYPE writes_total/g)).toHaveLength(1);
  registries.close('a');
  expect(await registries.metrics()).not.toContain('virtual_node="a"');
  registries.open('b');
  expect(await registries.metrics()).not.toContain('writes_total');
});
