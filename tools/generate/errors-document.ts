/** docs/reference/errors.md, from src/lib/errors.ts. */
import { ERROR_CODES } from '../../src/lib/errors.ts';

export const errorsDocument = (): string => `<!-- Made by tools/generate.ts from src/lib/errors.ts. -->

# Errors

Every error of Tributary has one of these codes. The code says what whoever meets it should do, and Tributary itself goes
by it. The text beside it comes from whoever refused, most often an API server.

| code | means | tried again |
| --- | --- | --- |
${Object.entries(ERROR_CODES)
  .map(([code, { means, retry }]) => `| \`${code}\` | ${means} | ${retry} |`)
  .join('\n')}

A command that gets \`Invalid\` ends as after a wrong option; all others end as failed.
`;
