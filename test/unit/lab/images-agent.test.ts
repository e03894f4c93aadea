import { expect, test } from '@jest/globals';

import { baseFailure, packageNames } from '../../../lab/agent-base.ts';
import { RunError } from '../../../lab/run.ts';
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
  const cause = new RunError('buildah failed', { printed: `${printed}\n${step}\n` });
  expect(buildFailure(cause)).toBe(`building the agent image failed: ${reason}`);
});

test.each([
  [new RunError('mmdebstrap is missing', { printed: '' }), 'mmdebstrap is missing'],
  [
    new RunError('mmdebstrap ...', { printed: 'I: running apt-get\nE: apt-get update failed\n' }),
    'E: apt-get update failed',
  ],
])('a base that failed with %s says so in one line', (cause, reason) => {
  expect(baseFailure(cause)).toContain(`failed: ${reason} (it needs buildah`);
});

test('a list of packages has one name a line, and comments', () => {
  expect(packageNames('# all\nlibc6   # node\n\nnftables\n')).toEqual(['libc6', 'nftables']);
});
