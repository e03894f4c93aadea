/** Who holds a TCP port of this host, for a message to a person. Linux only; without rights over the other process, nobody knows. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** State of a socket that listens, in /proc/net/tcp. */
const LISTENING = '0A';

/** As in `node (process 4711)`; undefined: not known. `root` is that of /proc. */
export function holderOf(port: number, root = '/proc'): string | undefined {
  const inodes = new Set(['tcp', 'tcp6'].flatMap((table) => listeningOn(port, `${root}/net/${table}`)));
  if (inodes.size === 0) return undefined;
  const pid = entriesOf(root).find((name) => /^\d+$/u.test(name) && holds(`${root}/${name}/fd`, inodes));
  if (pid === undefined) return undefined;
  return `${readText(`${root}/${pid}/comm`).trim() || 'a program'} (process ${pid})`;
}

const listeningOn = (port: number, table: string): string[] =>
  readText(table)
    .split('\n')
    .map((line) => line.trim().split(/\s+/u))
    .filter(([, local, , state]) => state === LISTENING && local?.split(':')[1] === hexOf(port))
    .flatMap((fields) => fields[9] ?? []);

const hexOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

const holds = (folder: string, inodes: ReadonlySet<string>): boolean =>
  entriesOf(folder).some((name) =>
    inodes.has(/^socket:\[(\d+)\]$/u.exec(linkOf(`${folder}/${name}`))?.[1] ?? ''),
  );

/** Processes end while we look, and others do not let us look. */
const orElse = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};
const entriesOf = (folder: string): string[] => orElse(() => readdirSync(folder), []);
const readText = (file: string): string => orElse(() => readFileSync(file, 'utf8'), '');
const linkOf = (file: string): string => orElse(() => readlinkSync(file), '');
