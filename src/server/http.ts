import type http from 'node:http';
import { systemClock } from '../lib/clock.ts';

/**
 * Of `node:http`, without what importing it loads: an import reads all exports of a module, and those of this one that are made at
 * their first use bring undici and compression along, several MiB in each process.
 */
export const createServer: typeof http.createServer = process.getBuiltinModule('node:http').createServer;

/**
 * Sets the header Date, which `node:http` else does by itself: it remembers the text for the rest of the second, by a timer, which wakes
 * a process at rest once more for each answer.
 */
export function setDate(response: http.ServerResponse): void {
  response.setHeader('Date', new Date(systemClock.now()).toUTCString());
}
