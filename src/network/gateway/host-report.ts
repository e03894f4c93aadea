import type { Tunnel } from '../../api/tunnel.ts';
import { contains, formatPrefix, type Prefix, tryPrefix } from '../../lib/prefix.ts';
import type { HostProblem, HostReport } from '../host/host-config.ts';

/**
 * The report of the host for each tunnel. A problem with a route to one peer concerns that peer alone; every other problem concerns
 * all of them.
 */
export function reportPerTunnel(
  host: HostReport,
  tunnels: readonly Tunnel[],
): (tunnel: Tunnel) => HostReport {
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

/** Finds the tunnel whose view a destination is or lies in. */
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

/**
 * In milliseconds. A tunnel's program that is started again is back within this time. A network that goes on meanwhile, or is back
 * before anybody could act, must not be called broken: every offloaded pod would be written twice.
 */
const PATIENCE_MS = 3000;

/** The report of the host that may be told: at once when all is well, and only when it lasts when something is wrong. */
export class LastingReport {
  #settled: HostReport | undefined;
  #last: HostReport | undefined;
  /** Monotonic. */
  #wrongSince: number | undefined;

  learn(report: HostReport, now: number): void {
    this.#last = report;
    if (report.problems.length > 0) this.#wrongSince ??= now;
    else this.#wrongSince = undefined;
  }

  /** Undefined: nothing can be told yet. */
  at(now: number): HostReport | undefined {
    if (now - (this.#wrongSince ?? -Infinity) >= PATIENCE_MS) this.#settled = this.#last;
    return this.#settled;
  }
}
