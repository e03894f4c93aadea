import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();

/** A new folder that is gone when this process ends. */
export function scratchFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tributary-bench-${name}-`));
  removeAtEnd(folder);
  return folder;
}

/** When this process ends, by whatever but SIGKILL or a signal that nobody handles. */
export function removeAtEnd(folder: string): void {
  if (folders.size === 0) process.once('exit', removeAll);
  folders.add(folder);
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
