import { isClusterName } from '../../api/forms.ts';
import type { NamespaceOffer } from '../../api/offer.ts';
import type { PeeringRequest, PeeringRequestSpec } from '../../api/peering-request.ts';
import { present } from '../../lib/fields.ts';
import type { RequestDocument } from '../protocol/documents.ts';
import type { Heard } from './inbox.ts';

/** What we store of a request. We leave out a cluster name that could mislead on a terminal; it is only for people. */
export function specOf({
  clusterName,
  namespaces,
  names = {},
  tether,
  fence,
}: RequestDocument): Omit<PeeringRequestSpec, 'clusterID' | 'approval'> {
  const tenantNames = Object.entries(names)
    .map(([homeNamespace, tenantNamespace]): NamespaceOffer => ({ homeNamespace, tenantNamespace }))
    .toSorted((a, b) => (a.homeNamespace < b.homeNamespace ? -1 : 1));
  return {
    ...(isClusterName(clusterName) && { clusterName }),
    namespaces: [...new Set(namespaces)].toSorted(),
    ...(tenantNames.length > 0 && { tenantNames }),
    ...(tether === true && { tether }),
    ...present({ fence }),
  };
}

/**
 * Whether its peer asks no longer, and so it goes. One that a person has denied stays denied: asked for anew, it would be as if nobody had
 * decided.
 */
export const isWithdrawn = ({ spec }: PeeringRequest, { request }: Pick<Heard, 'request'>): boolean =>
  request === null && spec.approval !== 'Denied';
