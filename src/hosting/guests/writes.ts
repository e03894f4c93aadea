import type { Admission, WriteQuestion } from '../../api/admission.ts';
import { guestNetworkPolicies } from '../../api/guest-network-policy.ts';
import type { Pod } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { TokenBuckets } from '../../lib/token-bucket.ts';
import type { Ledger } from './ledger.ts';
import { ObjectCounts } from './object-counts.ts';
import { type GuestTenant, knownTenant, type TenantDirectory } from './tenant-directory.ts';
import { WriteBudget } from './write-budget.ts';
import { bytesOf, changesNothing, costOfPodWrite, costOfWrite, tooLarge } from './write-cost.ts';

export interface GuestWritesOptions {
  clock: Clock;
  tenants: Pick<TenantDirectory, 'tenantOf' | 'writesOf' | 'podsOf' | 'quotasOf' | 'policiesOf'>;
  ledger: Pick<Ledger, 'podsIn'>;
  /** See WriteBudget. */
  heedless: (peer: string, message: string) => void;
}

/** Of Leases. A home renews one every ten seconds, in each of its namespaces at most. */
const HEARTBEATS = { burst: 240, perSecond: 12, maxKeys: 1000 };
/** A Lease is a few hundred bytes. */
const MOST_LEASE_BYTES = 4096;

/** Of a peer whose namespaces people have made. */
const MOST_POLICIES = 500;

const ADMITTED: Admission = { patch: [], warnings: [] };
const refused = (refusal: string): Admission => ({ ...ADMITTED, refusal });

const PODS = { group: '', resource: 'pods' } as const;

export interface PodWrite {
  pod: Pod;
  namespace: string;
  isNew: boolean;
  isDryRun: boolean;
}

interface Charged {
  group: string;
  resource: string;
  namespace: string;
  name: string;
  bytes: number;
  /** What etcd pays. */
  cost: number;
  isNew: boolean;
  isDryRun: boolean;
}

/** As the policy says; its pods come on top of the objects. */
type WriteLimits = ReturnType<TenantDirectory['writesOf']>;

/** What peers store in this cluster, of whatever kind: how large each object is, how many there are, and how much is written. */
export class GuestWrites {
  readonly #options: GuestWritesOptions;
  readonly #budget: WriteBudget;
  readonly #counts: ObjectCounts;
  readonly #heartbeats: TokenBuckets;

  constructor(options: GuestWritesOptions) {
    this.#options = options;
    const { clock, tenants, heedless } = options;
    this.#budget = new WriteBudget({ clock, heedless });
    this.#counts = new ObjectCounts({
      clock,
      quotasOf: (peer) => tenants.quotasOf(peer),
      uncountedOf: (peer) => tenants.policiesOf(peer),
    });
    this.#heartbeats = new TokenBuckets({ clock, ...HEARTBEATS });
  }

  /** A pod that is made, or changed by a subresource. Undefined: it may be stored. */
  pod(tenant: GuestTenant, { pod, namespace, isNew, isDryRun }: PodWrite): Admission | undefined {
    const bytes = bytesOf(pod);
    const { name } = pod.metadata;
    const cost = costOfPodWrite(bytes, isNew);
    return this.#charge(tenant, { ...PODS, namespace, name, bytes, cost, isNew, isDryRun });
  }

  /** Any other write of a peer. Throws Unavailable where the namespace is not known yet. */
  decide(question: WriteQuestion): Admission {
    const tenant = knownTenant(this.#options.tenants, question.namespace);
    if (changesNothing(question)) return ADMITTED;
    const bytes = bytesOf(question.object);
    const { operation, group, resource, namespace, name, isDryRun } = question;
    const cost = costOfWrite(question, bytes, this.#options.ledger.podsIn(namespace));
    const isNew = operation === 'CREATE';
    const where = { group, resource, namespace, name, isDryRun };
    // What is there already may be larger than what is let in today.
    if (operation === 'DELETE') {
      return this.#spend(tenant.peer, { ...where, bytes, cost, isNew }, this.#termsOf(tenant)) ?? ADMITTED;
    }
    return this.#charge(tenant, { ...where, bytes, cost, isNew }) ?? ADMITTED;
  }

  /** A heartbeat, which has a budget of its own: a home must not seem to be away because its peer has written much. */
  heartbeat({ namespace, object, isDryRun }: WriteQuestion): Admission {
    const { peer } = knownTenant(this.#options.tenants, namespace);
    const bytes = bytesOf(object);
    if (bytes > MOST_LEASE_BYTES) {
      return refused(`the Lease of a home is of ${MOST_LEASE_BYTES} bytes at most, this one is of ${bytes}`);
    }
    if (isDryRun || this.#heartbeats.of(peer).tryTake(1)) return ADMITTED;
    const refusal = `peer ${peer} renews its Leases more often than ${HEARTBEATS.perSecond} times a second over all its namespaces`;
    return { ...ADMITTED, refusal, retryAfterSeconds: 1 };
  }

  #charge(tenant: GuestTenant, charged: Charged): Admission | undefined {
    const terms = this.#termsOf(tenant);
    const problem = tooLarge(charged, charged.bytes, terms.objectKiB);
    if (problem !== undefined) return refused(problem);
    const { peer, isByContract } = tenant;
    // In namespaces that people have made, nobody says what the peer may have over all of them.
    const isCounted = charged.isNew && isByContract;
    const full = isCounted
      ? this.#counts.refusalOf(peer, terms.objects)
      : this.#tooManyPolicies(tenant, charged);
    if (full !== undefined) return refused(full);
    const refusal = this.#spend(peer, charged, terms);
    if (isCounted && refusal === undefined && !charged.isDryRun) {
      this.#counts.admitted(peer, charged.namespace);
    }
    return refusal;
  }

  /** In namespaces that people have made, quotas bound all other kinds. */
  #tooManyPolicies({ peer }: GuestTenant, { resource, isNew }: Charged): string | undefined {
    if (!isNew || resource !== guestNetworkPolicies.plural) return undefined;
    const count = this.#options.tenants.policiesOf(peer);
    return count < MOST_POLICIES
      ? undefined
      : `exceeded quota: peer ${peer} has ${count} GuestNetworkPolicies, ${MOST_POLICIES} at most`;
  }

  #spend(
    peer: string,
    { group, resource, namespace, name, cost, isDryRun }: Charged,
    { kibPerMinute, objects }: WriteLimits,
  ): Admission | undefined {
    const key = `${resource}.${group}/${namespace}/${name}`;
    const refusal = this.#budget.ask({ peer, key, bytes: cost, isDryRun, kibPerMinute, objects });
    return refusal && { ...refused(refusal.message), retryAfterSeconds: refusal.retryAfterSeconds };
  }

  #termsOf(tenant: GuestTenant): WriteLimits {
    const { tenants } = this.#options;
    const writes = tenants.writesOf(tenant);
    return { ...writes, objects: writes.objects + tenants.podsOf(tenant.peer) };
  }
}
