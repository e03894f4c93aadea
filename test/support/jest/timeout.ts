import { jest } from '@jest/globals';

// A last resort, longer than any wait (test/support/eventually.ts), whose own deadline says what did not come. The first file of a
// folder of end-to-end tests brings its lab up in this time, too.
jest.setTimeout(480_000);
