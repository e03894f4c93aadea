/** Loaded before the program, it turns the program into a peer that speaks no protocol of today, as one from before all of them. */
import { WebSocket } from 'ws';

const prototype = WebSocket.prototype as unknown as { send: (this: WebSocket, ...args: unknown[]) => void };
const plainSend = prototype.send;

prototype.send = function send(this: WebSocket, data: unknown, ...rest: unknown[]): void {
  const isHello = typeof data === 'string' && data.startsWith('{"type":"hello"');
  plainSend.call(this, isHello ? data.replace(/"protocols":\[[^\]]*\]/u, '"protocols":[7]') : data, ...rest);
};
