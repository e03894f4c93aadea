/**
 * Which permissions a request to the kubelet API asks for. The table is that of kubelet 1.36
 * (pkg/kubelet/server/auth.go, KEP-2862): attributes are tried in order, the first allowed one lets in.
 * All of them are on the resource `nodes`, named as this node.
 */
export interface NodeAttributes {
  verb: string;
  /** Never empty. */
  subresources: string[];
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Finer permissions of KubeletFineGrainedAuthz; they come before the one below. */
const FINE: readonly [prefix: string, subresource: string][] = [
  ['/pods', 'pods'],
  ['/healthz', 'healthz'],
  ['/configz', 'configz'],
  ['/runningpods', 'pods'],
];

const COARSE: readonly [prefix: string, subresource: string][] = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
  ['/checkpoint', 'checkpoint'],
  ['/statusz', 'statusz'],
  ['/flagz', 'configz'],
];

const under = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

const find = (table: readonly [string, string][], path: string): string | undefined =>
  table.find(([prefix]) => under(path, prefix))?.[1];

/** Undefined for a method that has no verb; such a request is refused. */
export function requestAttributes(method: string, path: string): NodeAttributes | undefined {
  const verb = VERBS[method];
  if (verb === undefined) return undefined;
  const fine = find(FINE, path);
  const coarse = find(COARSE, path) ?? 'proxy';
  return { verb, subresources: fine === undefined ? [coarse] : [fine, coarse] };
}
