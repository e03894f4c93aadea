import { expect, test } from '@jest/globals';

import { packageNames } from '../../../lab/agent-base.ts';
import { CommandError } from '../../../lab/command.ts';
import { buildFailure } from '../../../lab/images-agent.ts';

const step = 'Error: building at STEP "RUN npm ci": exit status 1';

test.each([
  [
    'npm error code ENOTFOUND\nnpm error network request failed',
    'npm ci needs the npm registry, which cannot be reached',
  ],
  ['npm error code SELF_SIGNED_CERT_IN_CHAIN', 'npm ci needs the npm registry, which cannot be reached'],
  ["> tsc\n\nsrc/a.ts(1,2): error TS2307: Cannot find 'x'.", "src/a.ts(1,2): error TS2307: Cannot find 'x'."],
  ['nothing useful', 'buildah failed'],
])('a build that printed %j failed because: %s', (printed, reason) => {
  const cause = new CommandError('buildah failed', `${printed}\n${step}\n`);
  expect(buildFailure(cause)).toBe(`building the agent image failed: ${reason}`);
});

test('a list of packages has one name a line, and comments', () => {
  expect(packageNames('# all\nlibc6   # node\n\nnftables\n')).toEqual(['libc6', 'nftables']);
});
