/** How an EndpointSlice (KEP-752) of home is kept in the tenant namespace. Pure. */
import {
  ANNOTATION_WITHHELD,
  LABEL_SERVICE_NAME,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { endpointSlices } from '../../api/resources.ts';
import type { Endpoint, EndpointSlice } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import { podAddressFamily } from '../pod-address.ts';
import {
  type Forged,
  mayBeCopied,
  mergedMeta,
  type MirrorContext,
  type MirroredKind,
  mirroredMeta,
} from './mirrored-kind.ts';
import { serviceKind } from './services.ts';

/** The foreign cluster's own controller names slices after their Service: names of ours must never clash with those. */
const NAME_PREFIX = 'tributary-';
const MAX_NAME = 253 - NAME_PREFIX.length;
const NOT_REFLECTED = 'EndpointNotReflected';
/** Tells proxies that the Service has no virtual address. */
const LABEL_HEADLESS = 'service.kubernetes.io/headless';
const FAMILIES: Readonly<Record<string, 4 | 6>> = { IPv4: 4, IPv6: 6 };

export const serviceOf = ({ metadata }: EndpointSlice): string | undefined =>
  metadata.labels?.[LABEL_SERVICE_NAME];

export const endpointSliceKind: MirroredKind<EndpointSlice> = {
  kind: 'endpointslices.discovery.k8s.io',
  type: endpointSlices,
  ruledBy: serviceKind.ruledBy,
  follows: serviceKind.kind,
  needsNetwork: true,
  remoteName: (name) => `${NAME_PREFIX}${name}`,
  homeName: (name) => (name.startsWith(NAME_PREFIX) ? name.slice(NAME_PREFIX.length) : undefined),
  select: (source, { isReflected }) => {
    const service = serviceOf(source);
    return (
      mayBeCopied(source) &&
      // Addresses that are names (FQDN) are deprecated, and nobody can say where they lead.
      FAMILIES[source.addressType] !== undefined &&
      service !== undefined &&
      // Under somebody else's Service over there, the endpoints would become part of that Service.
      isReflected(serviceKind.kind, service)
    );
  },
  forge: (source, context, copy) => {
    const forged = forgeSlice(source, context, copy);
    const { name } = source.metadata;
    return forged?.object !== undefined && name.length > MAX_NAME ? { leftOut: tooLong(name) } : forged;
  },
  mustReplace: (copy, wanted) => copy.addressType !== wanted.addressType,
  merge: (copy, wanted) => ({
    ...wanted,
    ...copy,
    metadata: mergedMeta(copy.metadata, wanted.metadata, []),
    endpoints: wanted.endpoints ?? [],
    ...portsOf(isNone(copy.ports) && isNone(wanted.ports) ? copy.ports : wanted.ports),
  }),
};

type Ports = EndpointSlice['ports'];
const portsOf = (ports: Ports): { ports?: NonNullable<Ports> } => (ports === undefined ? {} : { ports });
/** The API server stores an empty list as null. */
const isNone = (ports: Ports | null): boolean => (ports ?? []).length === 0;

function forgeSlice(
  source: EndpointSlice,
  context: MirrorContext,
  copy: EndpointSlice | undefined,
): Forged<EndpointSlice> | undefined {
  const { network } = context;
  if (network.state.kind === 'Off') return undefined;
  // What the foreign cluster withholds stays withheld until it says otherwise: else each would undo the other's writes.
  const isWithheld = copy?.metadata.annotations?.[ANNOTATION_WITHHELD] !== undefined;
  const isUnreachable = network.state.kind === 'Down' || isWithheld;
  const crossings = (source.endpoints ?? []).map((endpoint) => cross(endpoint, source.addressType, context));
  const endpoints = crossings.flatMap((crossing) =>
    typeof crossing === 'string' ? [] : [isUnreachable ? unreachable(crossing) : crossing],
  );
  // Until the tunnel works, the peer may not have told us its views yet.
  const leftOut = network.state.kind === 'Up' ? leftOutOf(source, crossings) : undefined;
  // All pods of the Service may be native over there: then there is nothing to write.
  if (endpoints.length === 0) return leftOut && { leftOut };
  const headless = source.metadata.labels?.[LABEL_HEADLESS];
  const labels = {
    [LABEL_SERVICE_NAME]: serviceOf(source) ?? '',
    [LABEL_SLICE_MANAGED_BY]: SLICE_MANAGER,
    ...(headless !== undefined && { [LABEL_HEADLESS]: headless }),
  };
  const name = `${NAME_PREFIX}${source.metadata.name}`;
  return {
    object: {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: mirroredMeta(name, context, { labels, annotations: {} }),
      addressType: source.addressType,
      endpoints,
      ports: source.ports ?? [],
    },
    ...(leftOut && { leftOut }),
  };
}

/** Kubernetes' own controller gives short names: only a person or another controller makes such a slice. */
const tooLong = ({ length }: string): NonNullable<Forged<EndpointSlice>['leftOut']> => ({
  reason: NOT_REFLECTED,
  message:
    `none of its endpoints can be reached from the foreign cluster: its name has ${length} characters, at most ` +
    `${MAX_NAME} leave room for the prefix of the copy; give it a shorter name`,
});

/** Why an endpoint does not cross. Native: the foreign cluster's own controller writes it. */
type Stays = 'Native' | 'NotAPod' | 'NotExported';

/** The endpoint as the foreign cluster sees it. Names of things at home (its node, zone, object) mean nothing there. */
function cross(
  { addresses, conditions, hostname }: Endpoint,
  addressType: string,
  { network }: MirrorContext,
): Endpoint | Stays {
  // Consumers use the first address only; nevertheless either all addresses cross, or none does.
  const translated: string[] = [];
  for (const address of addresses) {
    if (podAddressFamily(address) !== FAMILIES[addressType]) return 'NotAPod';
    if (network.isTheirs(address)) return 'Native';
    const view = network.foreignViewOf(address);
    if (view === undefined || podAddressFamily(view) === 0) return 'NotExported';
    translated.push(view);
  }
  return { addresses: translated, ...present({ conditions, hostname }) };
}

/** Nothing may be sent there: also a terminating endpoint must not serve as a last resort. */
const unreachable = ({ conditions, ...endpoint }: Endpoint): Endpoint => ({
  ...endpoint,
  conditions: { ...conditions, ready: false, serving: false },
});

function leftOutOf(
  { endpoints }: EndpointSlice,
  crossings: readonly (Endpoint | Stays)[],
): Forged<EndpointSlice>['leftOut'] {
  const stays = crossings.flatMap((crossing, index) =>
    crossing === 'NotAPod' || crossing === 'NotExported' ? [{ crossing, index }] : [],
  );
  const [first] = stays;
  if (first === undefined) return undefined;
  const address = endpoints?.[first.index]?.addresses[0] ?? '';
  const others = stays.length === 1 ? '' : ` and ${stays.length - 1} more`;
  const why =
    first.crossing === 'NotAPod'
      ? 'no other cluster may be sent to such an address'
      : 'it is in no prefix that the foreign cluster has a view of';
  return {
    reason: NOT_REFLECTED,
    message: `${address}${others} cannot be reached from the foreign cluster: ${why}`,
  };
}
