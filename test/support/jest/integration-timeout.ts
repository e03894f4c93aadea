import { jest } from '@jest/globals';

// A last resort, on real API servers and two cores that do much else besides: each wait of a test has a shorter deadline of its
// own, which says what was waited for. What a machine that is three times as slow takes is no failure.
jest.setTimeout(480_000);
