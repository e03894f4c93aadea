import { jest } from '@jest/globals';

// Longer than `eventually` waits, which knows what did not come; Jest's own 5 s would be over first.
jest.setTimeout(15_000);
