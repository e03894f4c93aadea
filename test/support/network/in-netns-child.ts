/** Runs in a network namespace: calls exports of modules of src as told on standard input, one JSON line per call. */
import { createInterface } from 'node:readline';

import type { NetnsAnswer, NetnsCall } from './in-netns.ts';

for await (const line of createInterface({ input: process.stdin })) {
  const { module, name, args } = JSON.parse(line) as NetnsCall;
  const answer = await call(module, name, args);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function call(module: string, name: string, args: readonly unknown[]): Promise<NetnsAnswer> {
  const started = performance.now();
  try {
    const exports = (await import(new URL(`../../../src/${module}`, import.meta.url).href)) as Record<
      string,
      (...values: readonly unknown[]) => unknown
    >;
    const called = exports[name];
    if (called === undefined) throw new Error(`${module} exports no ${name}`);
    const value = await called(...args);
    const result = value instanceof Map ? Object.fromEntries(value) : value;
    return { result, ms: performance.now() - started };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return { error: message, ...(code !== undefined && { code }), ms: performance.now() - started };
  }
}
