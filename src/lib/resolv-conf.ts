/** What resolv.conf(5) says, as far as it is needed here. */
export interface ResolvConf {
  nameservers: string[];
  searches: string[];
}

/** Resolvers ask no more of them (MAXNS), and a pod may name no more. */
export const MAX_NAMESERVERS = 3;

/** As the kubelet reads it: the last line of searches counts, and names are written without a dot at the end. */
export function parseResolvConf(text: string): ResolvConf {
  const found: ResolvConf = { nameservers: [], searches: [] };
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/u);
    const [first] = words;
    if (keyword === 'nameserver' && first !== undefined) found.nameservers.push(first);
    if (keyword === 'search') found.searches = words.map((name) => name.replace(/\.$/u, '')).filter(Boolean);
  }
  return found;
}
