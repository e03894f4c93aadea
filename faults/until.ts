import { setTimeout as sleep } from 'node:timers/promises';

const REST_MS = 100;

/** Asks until the answer is true; a text says what is still wrong, and stands in the error when the time is up. */
export async function until(
  what: string,
  ask: () => Promise<true | string>,
  deadlineMs = 60_000,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let wrong = ''; ; await sleep(REST_MS)) {
    try {
      const answer = await ask();
      if (answer === true) return;
      wrong = answer;
    } catch (error) {
      wrong = String(error);
    }
    if (performance.now() > end) throw new Error(`not within ${deadlineMs / 1000} s: ${what}: ${wrong}`);
  }
}
