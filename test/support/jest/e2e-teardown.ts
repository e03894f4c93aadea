import { downE2eLabs } from '../e2e/lab.ts';

/** Jest's globalTeardown of the e2e project. */
// oxlint-disable-next-line import/no-default-export -- Jest asks for it
export default downE2eLabs;
