import { expect, test } from '@jest/globals';
import { parseSeconds } from '../../../../src/cli/peering/environment.ts';
import { isUserCommand } from '../../../../src/cli/peering/peer-arguments.ts';

test.each([
  ['--virtual-node milan', false],
  ['', false],
  ['--virtual-node milan --kubelet-port 1 --log-level debug', false],
  ['milan:1', true],
  ['--id x milan:1', true],
  ['--yes milan:1', true],
  ['--token - milan:1', true],
  ['--context home milan:1 --timeout 1s', true],
])('"tributary peer %s": whether a person’s command', (line, isUser) => {
  expect(isUserCommand(line.split(' ').filter((arg) => arg !== ''))).toBe(isUser);
});

test.each([
  ['1s', 1],
  ['90s', 90],
  ['5m', 300],
  ['1h', 3600],
  ['2d', 172_800],
])('%s is %i seconds', (text, seconds) => {
  expect(parseSeconds(text)).toBe(seconds);
});

test.each([[''], ['0s'], ['5'], ['1.5h'], ['-1s'], ['99999999s'], ['1S']])('"%s" is no duration', (text) => {
  expect(() => parseSeconds(text)).toThrow(/is not a duration/);
});
