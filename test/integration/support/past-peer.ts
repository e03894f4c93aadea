/**
 * Loaded before the program, it turns the program into a peer from before today: with `?software=VERSION` it says that it is of that
 * version, without, that it speaks no protocol of today.
 */
import { WebSocket } from 'ws';

const software = new URL(import.meta.url).searchParams.get('software');
const prototype = WebSocket.prototype as unknown as { send: (this: WebSocket, ...args: unknown[]) => void };
const plainSend = prototype.send;

const olden = (hello: string): string =>
  software === null
    ? hello.replace(/"protocols":\[[^\]]*\]/u, '"protocols":[7]')
    : hello.replace(/"software":"[^"]*"/u, `"software":"${software}"`);

prototype.send = function send(this: WebSocket, data: unknown, ...rest: unknown[]): void {
  const isHello = typeof data === 'string' && data.startsWith('{"type":"hello"');
  plainSend.call(this, isHello ? olden(data) : data, ...rest);
};
