import { jest } from '@jest/globals';

// Longer than `eventually` waits, because that says what did not come; the 5 s of Jest would be over first.
jest.setTimeout(150_000);
