/**
 * A writer of ustar archives: always the same bytes for the same entries (no times, no owners but root, sorted),
 * so that an image's digest says what is in it.
 */
export type TarEntry =
  | { readonly type: 'file'; readonly path: string; readonly content: Uint8Array; readonly mode?: number }
  | { readonly type: 'directory'; readonly path: string; readonly mode?: number }
  | { readonly type: 'symlink'; readonly path: string; readonly target: string };

const blockSize = 512;
const typeFlags = { file: '0', directory: '5', symlink: '2' } as const;

/** The archive of the entries and of the folders above them, ordered by path. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const blocks = withParents(entries).flatMap((entry) => [header(entry), ...content(entry)]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockSize)]);
}

function withParents(entries: readonly TarEntry[]): TarEntry[] {
  const byPath = new Map<string, TarEntry>();
  for (const entry of entries) {
    const path = entry.path.replace(/^\/+|\/+$/g, '');
    if (byPath.has(path)) throw new Error(`two entries at /${path}`);
    byPath.set(path, { ...entry, path });
  }
  for (const path of byPath.keys()) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1) {
      const parent = parts.slice(0, depth).join('/');
      const existing = byPath.get(parent);
      if (existing === undefined) byPath.set(parent, { type: 'directory', path: parent });
      else if (existing.type !== 'directory')
        throw new Error(`/${parent} is not a folder, yet /${path} is in it`);
    }
  }
  // Code units, not a locale: the order must be the same everywhere.
  return [...byPath.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(blockSize);
  const octal = (value: number, at: number, length: number): void => {
    block.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  };
  const { name, prefix } = splitPath(entry.type === 'directory' ? `${entry.path}/` : entry.path);
  block.write(name, 0, 'utf8');
  octal(modeOf(entry), 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.type === 'file' ? entry.content.length : 0, 124, 12);
  octal(0, 136, 12);
  block.write(typeFlags[entry.type], 156, 'latin1');
  if (entry.type === 'symlink') block.write(checkedLength(entry.target, 100), 157, 'utf8');
  block.write('ustar\u000000', 257, 'latin1');
  block.write(prefix, 345, 'utf8');
  // The checksum counts its own field as eight spaces.
  block.fill(' ', 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1');
  return block;
}

function modeOf(entry: TarEntry): number {
  if (entry.type === 'symlink') return 0o777;
  return entry.mode ?? (entry.type === 'directory' ? 0o755 : 0o644);
}

function content(entry: TarEntry): Uint8Array[] {
  if (entry.type !== 'file') return [];
  return [entry.content, Buffer.alloc((blockSize - (entry.content.length % blockSize)) % blockSize)];
}

/** ustar keeps 100 bytes of name and 155 of the folders before it. */
function splitPath(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: '' };
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(name) <= 100) return { name, prefix: checkedLength(prefix, 155) };
  }
  return { name: checkedLength(path, 100), prefix: '' };
}

function checkedLength(text: string, bytes: number): string {
  if (Buffer.byteLength(text) > bytes) throw new Error(`too long for a tar archive: ${text}`);
  return text;
}
