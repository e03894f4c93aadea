import { expect, test } from '@jest/globals';
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
