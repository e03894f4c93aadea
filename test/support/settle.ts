/** Requests within this process that have been sent and have not arrived. */
class Work {
  #open = 0;

  begin(): void {
    this.#open++;
  }

  end(): void {
    this.#open--;
  }

  get isDone(): boolean {
    return this.#open === 0;
  }
}

/** Of this test file: Jest evaluates this module once for each. */
export const work: Work = new Work();

/** Turns in a row in which nothing is on its way. */
const QUIET_TURNS = 3;

/** More than any honest work takes between two moments of a clock that stands still. */
const MAX_TURNS = 20_000;

/** Lets promises, I/O callbacks that are ready, and requests within this process run, until nothing is left to run. */
export async function settle(): Promise<void> {
  let quiet = 0;
  for (let turn = 0; quiet < QUIET_TURNS; turn++) {
    if (turn > MAX_TURNS) throw new Error('requests follow each other without end, and no time passes');
    await new Promise((resolve) => setImmediate(resolve));
    quiet = work.isDone ? quiet + 1 : 0;
  }
}

/** Lets turns pass, and no time, until the condition holds; says what was missed when nothing is left to run. */
export async function soon(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  let quiet = 0;
  for (let turn = 0; !(await condition()); turn++) {
    if (quiet >= QUIET_TURNS || turn > MAX_TURNS) throw new Error(`not without time passing: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
    quiet = work.isDone ? quiet + 1 : 0;
  }
}
