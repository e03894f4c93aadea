import { createConnection, type Socket } from 'node:net';

const ANSWER_MS = 5000;
const LARGEST_ANSWER = 64 * 2 ** 20;

/** The other side has closed the connection before it has answered. */
class Ended extends Error {}

/**
 * Questions to a program, one after the other, over its Unix socket; an empty line ends an answer. The connection is kept: to make one
 * for each question costs as much as the question. It never keeps this process alive by itself.
 */
export class Conversation {
  readonly #path: string;
  #kept: Socket | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Undefined: nobody listens there.
   *
   * @throws Error that says in a few words what the program does
   */
  async ask(question: string): Promise<string | undefined> {
    const answer = this.#last.then(async () => this.#ask(question));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #ask(question: string): Promise<string | undefined> {
    const kept = this.#kept;
    try {
      if (kept !== undefined) return await this.#askOn(kept, question);
    } catch (error) {
      // Perhaps another one has taken its place.
      if (!(error instanceof Ended)) throw error;
    }
    const socket = await connected(this.#path);
    if (socket === undefined) return undefined;
    socket.on('error', () => undefined);
    socket.once('close', () => {
      if (this.#kept === socket) this.#kept = undefined;
    });
    this.#kept = socket;
    return this.#askOn(socket, question);
  }

  async #askOn(socket: Socket, question: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const onClose = (): void => reject(new Ended('has ended'));
    const onTimeout = (): void => reject(new Error('does not answer'));
    let answer = '';
    const onData = (text: string): void => {
      answer += text;
      if (answer.length > LARGEST_ANSWER) reject(new Error('answers too much'));
      if (answer.endsWith('\n\n')) resolve(answer);
    };
    socket.ref();
    socket.setEncoding('latin1').setTimeout(ANSWER_MS);
    socket.once('close', onClose).once('timeout', onTimeout).on('data', onData);
    if (socket.destroyed) onClose();
    else socket.write(question);
    try {
      return await promise;
    } catch (error) {
      // What still comes would be taken for the answer to the next question.
      socket.destroy();
      if (this.#kept === socket) this.#kept = undefined;
      throw error;
    } finally {
      socket.setTimeout(0);
      socket.off('close', onClose).off('timeout', onTimeout).off('data', onData);
      socket.unref();
    }
  }
}

async function connected(path: string): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  const socket = createConnection(path);
  socket.once('connect', () => resolve(socket));
  socket.once('error', () => resolve(undefined));
  return promise;
}
