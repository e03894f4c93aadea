/** What `tributary version` shows to people. Alone, so that it is there before anything else is loaded. */
import { BUILD, VERSION } from '../version.ts';

export const versionLine = (): string =>
  `tributary ${VERSION}${BUILD === undefined ? '' : ` (commit ${BUILD.commit}, built ${BUILD.date})`}\n`;
