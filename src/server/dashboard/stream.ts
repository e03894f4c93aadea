/** Server-sent events: the whole model at first, and again whenever it has changed, as fast as the reader reads. */
import type { ServerResponse } from 'node:http';

import type { Clock } from '../../lib/clock.ts';
import type { Session } from './sessions.ts';

/** Comes between: proxies and port-forwards close what is silent; and rights are reviewed as often. */
const BEAT_MS = 10_000;

interface StreamOptions {
  clock: Clock;
  session: Session;
  response: ServerResponse;
  /** Called once. */
  closed: () => void;
}

export function streamModels({ clock, session, response, closed }: StreamOptions): void {
  const { visitor, ended } = session;
  let last = '';
  let cancelBeat: () => void = () => undefined;

  const isOver = (): boolean => response.writableEnded || response.destroyed;
  /** What the reader has not taken is not added to: it gets the newest model once it has. */
  const mayWrite = (): boolean => !response.writableNeedDrain && !isOver();
  const send = (): void => {
    if (!mayWrite()) return;
    const text = JSON.stringify(visitor.model());
    if (text === last) return;
    last = text;
    response.write(`data: ${text}\n\n`);
  };
  const beat = (): void => {
    if (isOver()) return;
    cancelBeat = clock.after(BEAT_MS, () => {
      if (mayWrite()) response.write(': here\n\n');
      visitor.review().then(beat, (error: unknown) => {
        if ((error as { code?: unknown }).code === 'Unauthorized') end();
        else beat();
      });
    });
  };
  const forget = visitor.onChange(send);
  const leave = (): void => {
    cancelBeat();
    forget();
    ended.removeEventListener('abort', end);
    closed();
  };
  function end(): void {
    if (!response.writableEnded) response.end('event: ended\ndata: {}\n\n');
  }

  response.writeHead(200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  // One that fails closes, too.
  response.on('error', () => undefined);
  response.once('close', leave);
  response.on('drain', send);
  ended.addEventListener('abort', end, { once: true });
  send();
  beat();
}
