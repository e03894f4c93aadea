/** What API servers say they have answered: by whom it was asked they do not say, so only differences tell. */
import type { KubeApi } from '../../lab/kube-api.ts';

/** By verb and resource, such as `PUT pods/status`. */
export type RequestCounts = ReadonlyMap<string, number>;

const SAMPLE = /^apiserver_request_total\{(?<labels>[^}]*)\} (?<value>\S+)$/gmu;
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE']);

export async function requestCounts(api: KubeApi): Promise<RequestCounts> {
  const { status, body } = await api.call('GET', '/metrics');
  if (status !== 200) throw new Error(`the API server's metrics: ${status}`);
  return parseRequestCounts(body);
}

export function parseRequestCounts(exposition: string): RequestCounts {
  const counts = new Map<string, number>();
  for (const { groups } of exposition.matchAll(SAMPLE)) {
    const labels = groups?.['labels'] ?? '';
    const label = (name: string): string =>
      new RegExp(`(?:^|,)${name}="([^"]*)"`, 'u').exec(labels)?.[1] ?? '';
    const subresource = label('subresource');
    const key = `${label('verb')} ${label('resource')}${subresource === '' ? '' : `/${subresource}`}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(groups?.['value']));
  }
  return counts;
}

export function difference(before: RequestCounts, after: RequestCounts): RequestCounts {
  return new Map(
    [...after]
      .map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
}

export const writes = (counts: RequestCounts): number =>
  [...counts].reduce((sum, [key, count]) => sum + (WRITES.has(key.split(' ', 1)[0] ?? '') ? count : 0), 0);
