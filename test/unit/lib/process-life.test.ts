import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { hasEnded, nameIn, processIdentity } from '../../../src/lib/process-life.ts';

const own = processIdentity('tributary-peer-milan-5d4f');
const changed = (pattern: RegExp, to: string): string => own.replace(pattern, to);

/** The identity that this process would have, had it been that one. */
async function identityOfAnother(code: string): Promise<{ identity: string; end: () => Promise<void> }> {
  const module = JSON.stringify(new URL('../../../src/lib/process-life.ts', import.meta.url).href);
  const script = `const { processIdentity } = await import(${module}); console.log(processIdentity('other')); ${code}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const end = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  return { identity: line.toString('utf8').trim(), end };
}

test('a process lives until it has ended, by whatever end', async () => {
  const { identity, end } = await identityOfAnother('process.stdin.resume()');
  expect([nameIn(identity), hasEnded(identity)]).toEqual(['other', false]);
  await end();
  expect(hasEnded(identity)).toBe(true);
});

test('one whose number was given to another has ended', () => {
  expect(hasEnded(own)).toBe(false);
  expect(hasEnded(changed(/\d+$/u, '1'))).toBe(true);
});

test.each([
  ['on another machine, or before it started anew', changed(/_[0-9a-f]{4}/u, '_0000')],
  ['in another container', changed(/\.\d+\.(\d+)\.(\d+)$/u, '.1.99999999.1')],
  ['of which only the name is known', 'tributary-peer-milan-5d4f'],
  ['that is nobody', ''],
  ['off Linux', 'laptop_0f5b6a0e-8f0a-4a52-9d0b-3f1f0f4c9b11'],
])('of one %s nobody knows', (_where, identity) => {
  expect(hasEnded(identity)).toBe(false);
});

test('the name is what was given', () => {
  expect(nameIn(own)).toBe('tributary-peer-milan-5d4f');
  expect(nameIn('host_name_0f5b6a0e-8f0a-4a52-9d0b-3f1f0f4c9b11')).toBe('host_name');
  expect(nameIn('somebody')).toBe('somebody');
});
