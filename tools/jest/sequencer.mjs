import module from '@jest/test-sequencer';

// A CommonJS module with a default export of its own: which of both Node.js hands over depends on its version.
const Sequencer = module.default ?? module;

/** End-to-end files share clusters and run in the order of their paths; of all others the longest first, as Jest does it. */
export default class PathOrder extends Sequencer {
  sort(tests) {
    if (tests.some(({ path }) => !path.includes('/test/e2e/'))) return super.sort(tests);
    return tests.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }
}
