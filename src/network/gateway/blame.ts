/** Whose tunnels a problem of the host concerns. Pure. */
import type { Tunnel } from '../../api/tunnel.ts';
import { contains, formatPrefix, tryPrefix } from '../../lib/prefix.ts';
import type { Prefix } from '../../lib/prefix.ts';
import type { HostProblem, HostReport } from '../host/host-config.ts';

/**
 * What each tunnel is to be told of the host: a problem with a route to one peer is that peer's alone, whatever else is
 * wrong is everybody's.
 */
export function blamed(host: HostReport, tunnels: readonly Tunnel[]): (tunnel: Tunnel) => HostReport {
  const shared: HostProblem[] = [];
  const own = new Map<string, HostProblem[]>();
  const ownerOf = owners(tunnels);
  for (const problem of host.problems) {
    const owner = problem.about === undefined ? undefined : ownerOf(problem.about);
    if (owner === undefined) shared.push(problem);
    else own.set(owner, [...(own.get(owner) ?? []), problem]);
  }
  return ({ metadata }) => {
    return { changes: host.changes, problems: [...shared, ...(own.get(metadata.name) ?? [])] };
  };
}

/** Finds whose view a destination is, or lies in. */
function owners(tunnels: readonly Tunnel[]): (destination: string) => string | undefined {
  const views = tunnels.flatMap(({ metadata, status }) =>
    (status?.views ?? []).flatMap(({ as }): { view: Prefix; name: string }[] => {
      const view = tryPrefix(as);
      return view === undefined ? [] : [{ view, name: metadata.name }];
    }),
  );
  const names = new Map(views.map(({ view, name }) => [formatPrefix(view), name]));
  return (destination) => {
    const prefix = tryPrefix(destination);
    if (prefix === undefined) return undefined;
    return names.get(formatPrefix(prefix)) ?? views.find(({ view }) => contains(view, prefix))?.name;
  };
}
