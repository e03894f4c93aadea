/** Three suites, one configuration: `node tools/jest.ts unit|integration|e2e`. */
const common = {
  transform: { '\\.ts$': '<rootDir>/tools/jest/strip-types.mjs' },
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
};

export default {
  projects: ['unit', 'integration', 'e2e'].map((name) => ({
    ...common,
    displayName: name,
    testMatch: [`<rootDir>/test/${name}/**/*.test.ts`],
  })),
  reporters: ['default', '<rootDir>/tools/jest/closing-line.mjs'],
  coverageProvider: 'v8',
};
