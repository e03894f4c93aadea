import { contractOf } from '../../api/offer.ts';
import type { WriteTerms } from '../../api/write-terms.ts';
import { writesOf } from '../annotations.ts';
import type { ResourceQuota } from '../tenants/quota-recounts.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { Tenants } from '../tenants/tenants.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';

/** A tenant namespace. */
export interface GuestTenant {
  /** Whose pods live there: a ClusterID, or what people call the peer. */
  peer: string;
  /** Made because of a contract, and not by people: only then it is known what is granted over all namespaces. */
  isByContract: boolean;
  annotations: Readonly<Record<string, string>>;
}

interface TenantDirectoryOptions {
  tenants: Pick<Tenants, 'namespaces' | 'namespacesOf' | 'quotasOf'>;
  /** GuestNetworkPolicies of a peer, in all its namespaces. */
  policiesOf: (peer: string) => number;
  request: (peer: string) => PeeringRequest | undefined;
}

/** Which namespaces are tenants, whose, and what was granted to each peer; from caches, for admission of guests. */
export class TenantDirectory {
  readonly #options: TenantDirectoryOptions;

  constructor(options: TenantDirectoryOptions) {
    this.#options = options;
  }

  /** Undefined: not seen (yet), or nobody's. */
  tenantOf(namespace: string): GuestTenant | undefined {
    const { labels = {}, annotations = {} } = this.#options.tenants.namespaces.get(namespace)?.metadata ?? {};
    const peer = labels[LABEL_PEER];
    if (peer === undefined) return undefined;
    return { peer, isByContract: labels[LABEL_TENANCY] === TENANCY_CONTRACT, annotations };
  }

  /** Those by contract. */
  namespacesOf(peer: string): readonly string[] {
    return this.#options.tenants.namespacesOf(peer).map(({ metadata }) => metadata.name);
  }

  /** What a peer may use over all its namespaces, as in the quota of each of them; undefined without a contract. */
  grantOf(peer: string): ResourceList | undefined {
    const { status } = this.#options.request(peer) ?? {};
    if (status?.contract === undefined) return undefined;
    return status.promised ?? readableResources(status.contract);
  }

  /** What a peer may write. Its namespaces say the same, but for the moment after a change. */
  writesOf({ annotations }: Pick<GuestTenant, 'annotations'>): Required<WriteTerms> {
    return writesOf(annotations);
  }

  /** How many pods a peer may have at a time; 0 without a contract. */
  podsOf(peer: string): number {
    const pods = Number(this.grantOf(peer)?.['pods'] ?? 0);
    return Number.isFinite(pods) ? pods : 0;
  }

  /** Of the namespaces by contract. */
  quotasOf(peer: string): readonly ResourceQuota[] {
    return this.#options.tenants.quotasOf(peer);
  }

  /** GuestNetworkPolicies of a peer. A quota would not count a kind that is new for half a minute, and refuse all of it. */
  policiesOf(peer: string): number {
    return this.#options.policiesOf(peer);
  }

  /** Whether any namespace is a peer's, whoever has made it. */
  hasTenants(): boolean {
    return [...this.#options.tenants.namespaces.list()].some(
      ({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined,
    );
  }

  /** Calls back when any namespace comes, goes or changes. */
  onTenants(listener: () => void): () => void {
    return this.#options.tenants.namespaces.onChange(listener);
  }
}

/** Throws Unavailable where the namespace is not known yet. */
export function knownTenant(tenants: Pick<TenantDirectory, 'tenantOf'>, namespace: string): GuestTenant {
  const tenant = tenants.tenantOf(namespace);
  if (tenant !== undefined) return tenant;
  throw new TributaryError('Unavailable', `namespace ${namespace} is not known to be a peer's`);
}

/** Undefined for a contract that somebody has spoilt. */
function readableResources(contract: Parameters<typeof contractOf>[0]): ResourceList | undefined {
  try {
    return contractOf(contract)?.resources;
  } catch (error) {
    if (hasCode(error, 'Invalid')) return undefined;
    throw error;
  }
}
