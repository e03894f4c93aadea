import { jest } from '@jest/globals';

// A last resort: each wait of a test has a shorter deadline of its own, which says what was waited for.
jest.setTimeout(180_000);
