import { GUEST_POLICY_LIMITS, type GuestNetworkPolicy } from '../api/guest-network-policy.ts';
import { matchesSelector } from '../api/label-selector.ts';
import { MAX_STRICTER_POLICIES, STRICTER_CAUSES } from '../api/limits.ts';
import { OFFLOADED_REASONS } from '../api/names.ts';
import { LABEL_GUEST_POLICY, type NetworkPolicy, policyTypesOf } from '../api/network-policy.ts';
import type { StricterPolicy } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import { shownText } from '../lib/untrusted.ts';
import type { Refusal } from './pods/refusal.ts';
import type { Mirror } from './reflect/mirror.ts';
import type { OpenKind } from './reflect/mirror-sides.ts';
import { isInForce, networkPolicyKind } from './reflect/network-policies.ts';
import type { HomePolicyWorld } from './reflect/policy-world.ts';
import type { Tenant, Tenants } from './tenants.ts';

interface PolicyStatesOptions {
  tenants: Tenants;
  mirror: Pick<Mirror, 'isSelected' | 'told' | 'causes'>;
  world: Pick<HomePolicyWorld, 'problem'>;
}

const KIND = networkPolicyKind.kind;

/** Which NetworkPolicies of home select a pod, and where they stand over there. */
export class PolicyStates {
  readonly #options: PolicyStatesOptions;

  constructor(options: PolicyStatesOptions) {
    this.#options = options;
  }

  /** Why the pod may not be begun yet; undefined: all policies that select it are in force over there, or there are none. */
  obstacle(pod: Pod): Refusal | undefined {
    const tenant = this.#options.tenants.of(pod.metadata.namespace ?? '');
    const open = openIn(tenant);
    if (tenant === undefined || open === 'None') return undefined;
    if (open?.home.synced !== true)
      return waiting(`NetworkPolicies of its namespace are not read yet${because(open?.home.contact.error)}`);
    const late = this.#selecting(tenant, open, pod).find(
      (policy) => !isInForce(policy, copyOf(tenant, open, policy)),
    );
    if (late === undefined) return undefined;
    const why =
      this.#options.mirror.told(KIND, tenant.mapping.homeNamespace, late.metadata.name) ??
      closedIn(copyOf(tenant, open, late))[0] ??
      open.remote.contact.error ??
      this.#options.world.problem;
    return waiting(
      `NetworkPolicy "${late.metadata.name}" selects the pod, and is not in force in the foreign cluster${because(why)}`,
    );
  }

  /** Labels that make the pod obey them over there, or null where none is to be; undefined: not known, and nothing is to change. */
  marks(pod: Pod): Record<string, 'true' | null> | undefined {
    const tenant = this.#options.tenants.of(pod.metadata.namespace ?? '');
    const open = openIn(tenant);
    if (tenant === undefined || open === 'None') return NO_MARKS;
    if (open === undefined || this.obstacle(pod) !== undefined) return undefined;
    const types = this.#selecting(tenant, open, pod).flatMap(({ spec = {} }) => policyTypesOf(spec));
    const closed = types.map((type) => [LABEL_GUEST_POLICY[type], 'true'] as const);
    return { ...NO_MARKS, ...Object.fromEntries(closed) };
  }

  /** Policies that close more over there than at home. */
  stricter(): StricterPolicy[] {
    const all = [...this.#options.tenants.all()].flatMap((tenant) => this.#stricterIn(tenant));
    return all.slice(0, MAX_STRICTER_POLICIES);
  }

  #stricterIn(tenant: Tenant): StricterPolicy[] {
    const open = openIn(tenant);
    if (open === 'None' || open?.home.synced !== true) return [];
    const { homeNamespace } = tenant.mapping;
    return ([...open.home.list()] as NetworkPolicy[])
      .filter(({ metadata }) => this.#options.mirror.isSelected(KIND, homeNamespace, metadata.name))
      .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
      .flatMap((policy) => {
        const { name } = policy.metadata;
        const closed = closedIn(copyOf(tenant, open, policy));
        const causes = fitting([
          ...this.#options.mirror.causes(KIND, homeNamespace, name),
          ...closed.map((text) => `the provider: ${text}`),
        ]);
        return causes.length === 0 ? [] : [{ homeNamespace, policy: name, causes }];
      });
  }

  #selecting({ mapping }: Tenant, { home }: OpenKind, { metadata }: Pod): NetworkPolicy[] {
    return ([...home.list()] as NetworkPolicy[]).filter(
      (policy) =>
        matchesSelector(policy.spec?.podSelector ?? {}, metadata.labels ?? {}) &&
        this.#options.mirror.isSelected(KIND, mapping.homeNamespace, policy.metadata.name),
    );
  }
}

const NO_MARKS: Readonly<Record<string, null>> = Object.fromEntries(
  Object.values(LABEL_GUEST_POLICY).map((key) => [key, null]),
);

/** None: the rules of the namespace leave policies at home. Undefined: not known yet. */
function openIn(tenant: Tenant | undefined): OpenKind | 'None' | undefined {
  const open = tenant?.mirror.of(KIND);
  const isNone = tenant?.mirror.isDrained(KIND) === true || open?.ruled.rule.policy === 'None';
  return isNone ? 'None' : open;
}

const copyOf = (
  { mapping }: Tenant,
  { remote }: OpenKind,
  { metadata }: NetworkPolicy,
): GuestNetworkPolicy | undefined =>
  remote.get(`${mapping.tenantNamespace}/${metadata.name}`) as GuestNetworkPolicy | undefined;

/** As a foreign cluster says it: nothing of it is to be believed. */
function closedIn(copy: GuestNetworkPolicy | undefined): string[] {
  const closed: unknown = copy?.status?.closed;
  if (!Array.isArray(closed)) return [];
  return closed
    .filter((text) => typeof text === 'string')
    .map((text) => shownText(text, STRICTER_CAUSES.length))
    .slice(0, GUEST_POLICY_LIMITS.closed);
}

/** Those for which there is room, and how many there are beyond. */
function fitting(causes: readonly string[]): string[] {
  const { most, length, size } = STRICTER_CAUSES;
  const shown = causes.map((text) => shownText(text, length));
  const sizeOf = (texts: readonly string[]): number => texts.join('').length;
  if (shown.length <= most && sizeOf(shown) <= size) return shown;
  const more = (count: number): string => `and ${count} more`;
  let count = Math.min(shown.length, most - 1);
  while (sizeOf([...shown.slice(0, count), more(shown.length)]) > size) count--;
  return [...shown.slice(0, count), more(shown.length - count)];
}

const because = (why: string | undefined): string => (why === undefined ? '' : `: ${why}`);

const waiting = (message: string): Refusal => ({ reason: OFFLOADED_REASONS.networkPolicy, message });
