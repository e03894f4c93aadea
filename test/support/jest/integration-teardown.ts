import { downBorrowedLabs } from '../labs/borrowed-lab.ts';

/** Jest's globalTeardown of the integration project. `TRIBUTARY_TEST_LABS=keep` leaves labs up: for whoever writes tests. */
// oxlint-disable-next-line import/no-default-export -- Jest asks for it
export default async function teardown(): Promise<void> {
  if (process.env['TRIBUTARY_TEST_LABS'] !== 'keep') await downBorrowedLabs();
}
