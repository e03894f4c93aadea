import type { WatchFault } from './fault.ts';

/** Where a watch goes to: the client's end of a stream. */
export interface WatchSink {
  write(text: string): void;
  end(): void;
  /** Breaks the connection, after a last piece. */
  destroy(last?: string): void;
}

/** Passes the events of one watch on, a line each, and does to them what the fault of the moment says. */
export class WatchRelay {
  readonly #sink: WatchSink;
  readonly #later: (ms: number, run: () => void) => void;
  /** Told of each that has changed something. */
  readonly #onFault: (fault: WatchFault) => void;
  #fault: WatchFault | undefined;
  /** Lines of an answer come in pieces. */
  #rest = '';
  /** Waits for its neighbour. */
  #held: string | undefined;
  /** They come later. */
  readonly #late = new Set<{ readonly line: string }>();
  #last: string | undefined;
  #count = 0;
  #isSilent = false;
  #isOver = false;

  constructor(
    sink: WatchSink,
    options: { later: (ms: number, run: () => void) => void; onFault: (fault: WatchFault) => void },
  ) {
    this.#sink = sink;
    this.#later = options.later;
    this.#onFault = options.onFault;
  }

  /** Undefined: nothing is wrong any more. What was held back is sent; a watch that was silent has lost events, so it ends. */
  set fault(fault: WatchFault | undefined) {
    this.#fault = fault;
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#send(held);
    // An event that begins after the fault does not overtake one that came before.
    for (const late of this.#late) this.#arrive(late);
    if (this.#isSilent && fault?.kind !== 'silence') this.#break();
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') this.#line(line);
  }

  end(): void {
    // Whoever hears nothing does not hear the end either.
    if (this.#fault?.kind === 'silence') this.#isSilent = true;
    if (this.#isOver || this.#isSilent) return;
    if (this.#rest !== '' && this.#fault === undefined) this.#sink.write(this.#rest);
    this.#isOver = true;
    this.#sink.end();
  }

  #line(line: string): void {
    if (this.#isOver) return;
    const fault = this.#fault;
    if (fault === undefined) {
      this.#send(line);
      return;
    }
    if (this.#disturb(line, fault)) this.#onFault(fault);
    this.#last = line;
    this.#count++;
  }

  /** Whether the client sees anything else than without it. */
  #disturb(line: string, fault: WatchFault): boolean {
    switch (fault.kind) {
      case 'delay':
        this.#delay(line, fault.ms);
        break;
      case 'truncate':
        this.#break(line.slice(0, Math.floor(line.length / 2)));
        break;
      case 'duplicate':
        this.#send(line);
        this.#send(line);
        break;
      case 'reorder':
        return this.#swap(line);
      case 'replay':
        return this.#replay(line);
      case 'error':
        this.#send(errorEvent(fault.code));
        this.end();
        break;
      case 'silence':
        this.#isSilent = true;
    }
    return true;
  }

  #delay(line: string, ms: number): void {
    const late = { line };
    this.#late.add(late);
    this.#later(ms, () => this.#arrive(late));
  }

  #arrive(late: { readonly line: string }): void {
    if (this.#late.delete(late)) this.#send(late.line);
  }

  #replay(line: string): boolean {
    this.#send(line);
    if (this.#count % 2 === 0 || this.#last === undefined) return false;
    this.#send(this.#last);
    return true;
  }

  #swap(line: string): boolean {
    const held = this.#held;
    this.#held = held === undefined ? line : undefined;
    if (held === undefined) return false;
    this.#send(line);
    this.#send(held);
    return true;
  }

  #send(line: string): void {
    if (!this.#isOver) this.#sink.write(`${line}\n`);
  }

  #break(last?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink.destroy(last);
  }
}

/** As the API server says it (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes). */
function errorEvent(code: 410 | 500): string {
  const reason = code === 410 ? 'Expired' : 'InternalError';
  const object = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'injected', reason, code };
  return JSON.stringify({ type: 'ERROR', object });
}
