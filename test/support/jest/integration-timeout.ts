import { jest } from '@jest/globals';

// Real API servers, on two cores that do much else besides: five seconds are soon gone, and deadlines of the waits say
// more than that of the test.
jest.setTimeout(180_000);
