import { expect, test } from '@jest/globals';
import { createLogger } from '../../../src/lib/log.ts';

test('a line holds nothing that a terminal would obey, and is JSON of what was said', () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => void lines.push(line) });
  const said = 'a\u001b[2J\u009b\u007f\u202e\u2066\u2028\nb';
  log.warn('a peer said', { problem: said });
  expect(lines[0]).toMatch(/^[\u{20}-\u{7e}]*\n$/u);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ problem: said });
});
