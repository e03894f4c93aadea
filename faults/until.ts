import { setTimeout as sleep } from 'node:timers/promises';

const REST_MS = 100;

/**
 * Asks until the answer is true; a text says what is still wrong, and stands in the error when the time is up. A question that hangs for
 * `questionMs` counts as not answered, and is asked anew; what comes of it later is not heard.
 */
export async function until(
  what: string,
  ask: () => Promise<true | string>,
  deadlineMs = 60_000,
  questionMs = 15_000,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let wrong = ''; ; await sleep(REST_MS)) {
    try {
      const answer = await within(questionMs, ask());
      if (answer === true) return;
      wrong = answer;
    } catch (error) {
      wrong = String(error);
    }
    if (performance.now() > end) throw new Error(`not within ${deadlineMs / 1000} s: ${what}: ${wrong}`);
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T | string> {
  const answered = new AbortController();
  const { signal } = answered;
  const late = sleep(ms, `no answer within ${ms / 1000} s`, { signal });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    answered.abort();
    // One that fails later is not heard either.
    work.catch(() => undefined);
  }
}
