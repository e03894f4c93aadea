import { jest } from '@jest/globals';

// A last resort: each wait of a test has a shorter deadline of its own, which says what was waited for. The first file of
// a folder brings its lab up in this time, too.
jest.setTimeout(480_000);
