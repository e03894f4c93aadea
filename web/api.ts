/** What the page says to its server. The token passes through here once, and is kept nowhere. */
import type { DashboardAction, DashboardModel } from '../src/dashboard/model.ts';

export interface Failure {
  status: number;
  message: string;
}

export type Answer<T> = { ok: true; value: T } | { ok: false; failure: Failure };

async function call<T>(path: string, body?: object): Promise<Answer<T>> {
  try {
    const response = await fetch(path, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json', 'x-tributary-page': '1' },
      redirect: 'error',
    });
    const value = (await response.json()) as T & { error?: string };
    if (response.ok) return { ok: true, value };
    return { ok: false, failure: { status: response.status, message: value.error ?? response.statusText } };
  } catch {
    const message = 'The dashboard does not answer. Is the port-forward still running?';
    return { ok: false, failure: { status: 0, message } };
  }
}

export const whoAmI = async (): Promise<Answer<{ user?: string }>> => call('/api/session');
export const signIn = async (by: { token: string } | { code: string }): Promise<Answer<{ user: string }>> =>
  call('/api/sign-in', by);
export const signOut = async (): Promise<Answer<object>> => call('/api/sign-out', {});
export const act = async (action: DashboardAction): Promise<Answer<{ done: string }>> =>
  call('/api/actions', action);

interface Follower {
  onModel: (model: DashboardModel) => void;
  onLive: (isLive: boolean) => void;
  /** The session is over. */
  onEnd: () => void;
}

const AGAIN_MS = 1500;

/** Follows the models until the returned function is called. */
export function follow({ onModel, onLive, onEnd }: Follower): () => void {
  let source: EventSource | undefined;
  let isOver = false;
  const open = (): void => {
    if (isOver) return;
    source = new EventSource('/api/models');
    source.addEventListener('message', (event: MessageEvent<string>) => {
      onLive(true);
      onModel(JSON.parse(event.data) as DashboardModel);
    });
    source.addEventListener('ended', () => {
      stop();
      onEnd();
    });
    source.addEventListener('error', () => {
      onLive(false);
      source?.close();
      setTimeout(() => void again(), AGAIN_MS);
    });
  };
  const again = async (): Promise<void> => {
    if (isOver) return;
    const answer = await whoAmI();
    if (answer.ok && answer.value.user === undefined) {
      stop();
      onEnd();
    } else open();
  };
  const stop = (): void => {
    isOver = true;
    source?.close();
  };
  open();
  return stop;
}
