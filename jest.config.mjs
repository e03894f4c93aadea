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
    setupFilesAfterEnv: ['<rootDir>/test/support/jest/timeout.ts'],
    // Files use control planes one after another.
    ...(name === 'integration' && {
      globalSetup: '<rootDir>/test/support/jest/integration-setup.ts',
      globalTeardown: '<rootDir>/test/support/jest/integration-teardown.ts',
    }),
    // One lab for each folder of end-to-end tests.
    ...(name === 'e2e' && {
      globalSetup: '<rootDir>/test/support/jest/e2e-setup.ts',
      globalTeardown: '<rootDir>/test/support/jest/e2e-teardown.ts',
    }),
  })),
  testSequencer: '<rootDir>/tools/jest/sequencer.mjs',
  reporters: ['default', '<rootDir>/tools/jest/closing-line.mjs'],
  coverageProvider: 'v8',
};
