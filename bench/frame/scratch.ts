import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder that is gone when this process ends. Only SIGKILL, or a signal that nobody handles, leaves it there. */
export function scratchFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tributary-bench-${name}-`));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
