/** What the caller may ask for. Pure. */

export type Command =
  /** Forgets what was. */
  | { readonly do: 'begin'; readonly run: string }
  /** The process must not end. */
  | { readonly do: 'watch-process'; readonly pid: number }
  /** The caller has killed it, or will at once. */
  | { readonly do: 'killed'; readonly pid: number }
  /** A remote pod was lost over there, by the caller's doing; the UID may be that of its home pod. */
  | { readonly do: 'lost'; readonly cluster: string; readonly uid: string }
  /** The etcd of that cluster was restored, and its API server answers again. */
  | { readonly do: 'restored'; readonly cluster: string }
  | { readonly do: 'settle' }
  | { readonly do: 'end' };

/** @throws {Error} that says what is wrong with the line */
export function commandOf(line: string): Command {
  const value = JSON.parse(line) as Record<string, unknown>;
  const text = (name: string): string => {
    const found = value[name];
    if (typeof found !== 'string' || found === '') throw new Error(`${line}: ${name} must be a text`);
    return found;
  };
  const pid = (): number => {
    const found = Number(value['pid']);
    if (!Number.isInteger(found) || found <= 0) throw new Error(`${line}: pid must be a number`);
    return found;
  };
  switch (value['do']) {
    case 'begin':
      return { do: 'begin', run: text('run') };
    case 'watch-process':
    case 'killed':
      return { do: value['do'], pid: pid() };
    case 'lost':
      return { do: 'lost', cluster: text('cluster'), uid: text('uid') };
    case 'restored':
      return { do: 'restored', cluster: text('cluster') };
    case 'settle':
    case 'end':
      return { do: value['do'] };
    default:
      throw new Error(`${line}: there is no such command`);
  }
}
