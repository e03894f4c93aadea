import { isHeartbeat } from './fault.ts';
import type { FaultProxy } from './proxy.ts';

/**
 * From now on the writes that pass the proxy are counted, and at one of them the program dies.
 *
 * @param restart kills it at once, and resolves when it has been started again
 * @returns whether that write was made; resolves when the program is back
 */
export function killAtWrite(
  proxy: FaultProxy,
  { write, when }: { readonly write: number; readonly when: 'before' | 'after' },
  restart: () => Promise<void>,
): () => Promise<boolean> {
  let writes = 0;
  let restarted: Promise<void> | undefined;
  proxy.onKill = () => {
    restarted = restart();
    restarted.catch(() => undefined);
  };
  proxy.judge((asked) => {
    if (!asked.isWrite || isHeartbeat(asked)) return undefined;
    writes++;
    return writes === write ? { kind: 'kill', when } : undefined;
  });
  return async () => {
    await restarted;
    return restarted !== undefined;
  };
}
