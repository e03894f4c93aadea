import module from '@jest/test-sequencer';

// This CommonJS module has a default export of its own. The version of Node.js decides which of the two an import
// returns.
const Sequencer = module.default ?? module;

/**
 * End-to-end files share clusters and run in the order of their paths. Of all other files the longest runs first,
 * which is the default of Jest.
 */
export default class PathOrder extends Sequencer {
  sort(tests) {
    if (tests.some(({ path }) => !path.includes('/test/e2e/'))) return super.sort(tests);
    return tests.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }
}
