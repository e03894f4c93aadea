/** How an EndpointSlice (KEP-752) of home is kept in the tenant namespace. Pure. */
import {
  ANNOTATION_NATIVE_ENDPOINTS,
  ANNOTATION_NO_POD_AT,
  ANNOTATION_WITHHELD,
  LABEL_SERVICE_NAME,
  LABEL_SLICE_MANAGED_BY,
  SELECTOR_SLICE_MANAGER,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { formatNativeEndpoints, type NativeEndpoint } from '../../api/native-endpoints.ts';
import { endpointSlices } from '../../api/resources.ts';
import type { Endpoint, EndpointSlice } from '../../api/wire.ts';
import { present, withoutKeys } from '../../lib/fields.ts';
import { podAddressFamily } from '../pod-address.ts';
import {
  type Forged,
  mayBeCopied,
  mergedMeta,
  type MirrorContext,
  type MirroredKind,
  mirroredMeta,
  type Wanted,
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
  mayReplace: true,
  mustReplace: (copy, wanted) => copy.addressType !== wanted.addressType,
  lesser: withoutNatives,
  merge: (copy, wanted) => ({
    ...wanted,
    ...copy,
    metadata: mergedMeta(copy.metadata, wanted.metadata, [ANNOTATION_NATIVE_ENDPOINTS]),
    endpoints: wanted.endpoints ?? [],
    ...portsOf(isNone(copy.ports) && isNone(wanted.ports) ? copy.ports : wanted.ports),
  }),
};

type Ports = EndpointSlice['ports'];
const portsOf = (ports: Ports): { ports?: NonNullable<Ports> } => (ports === undefined ? {} : { ports });
/** The API server stores an empty list as null. */
const isNone = (ports: Ports | null): boolean => (ports ?? []).length === 0;

/** A provider of an earlier version refuses the annotation, and with it the whole object. */
function withoutNatives(wanted: Wanted<EndpointSlice>): Wanted<EndpointSlice> | undefined {
  const { annotations = {} } = wanted.metadata;
  if (annotations[ANNOTATION_NATIVE_ENDPOINTS] === undefined) return undefined;
  const rest = withoutKeys(annotations, [ANNOTATION_NATIVE_ENDPOINTS]);
  return { ...wanted, metadata: { ...wanted.metadata, annotations: rest } };
}

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
  const crossings = (source.endpoints ?? []).map((endpoint) => cross(endpoint, source, context));
  const endpoints = crossings.flatMap((crossing) =>
    'crosses' in crossing ? [isUnreachable ? unreachable(crossing.crosses) : crossing.crosses] : [],
  );
  // No tunnel lies between these and their clients over there.
  const natives = crossings.flatMap((crossing) => ('native' in crossing ? [crossing.native] : []));
  // Until the tunnel works, the peer may not have told us its views yet.
  const leftOut = network.state.kind === 'Up' ? leftOutOf(source, crossings, copy) : undefined;
  // All pods of the Service may be native over there: then there is nothing to write.
  if (endpoints.length === 0 && natives.length === 0) return leftOut && { leftOut };
  return {
    object: {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: metaOf(source, natives, context),
      addressType: source.addressType,
      endpoints,
      ports: source.ports ?? [],
    },
    ...(leftOut && { leftOut }),
  };
}

function metaOf(
  source: EndpointSlice,
  natives: readonly NativeEndpoint[],
  context: MirrorContext,
): Wanted<EndpointSlice>['metadata'] {
  const headless = source.metadata.labels?.[LABEL_HEADLESS];
  const labels = {
    [LABEL_SERVICE_NAME]: serviceOf(source) ?? '',
    [LABEL_SLICE_MANAGED_BY]: SLICE_MANAGER,
    ...(headless !== undefined && { [LABEL_HEADLESS]: headless }),
  };
  const annotations: Record<string, string> =
    natives.length === 0 ? {} : { [ANNOTATION_NATIVE_ENDPOINTS]: formatNativeEndpoints(natives) };
  return mirroredMeta(`${NAME_PREFIX}${source.metadata.name}`, context, { labels, annotations });
}

/** Kubernetes' own controller gives short names: only a person or another controller makes such a slice. */
const tooLong = ({ length }: string): NonNullable<Forged<EndpointSlice>['leftOut']> => ({
  reason: NOT_REFLECTED,
  message:
    `none of its endpoints can be reached from the foreign cluster: its name has ${length} characters, at most ` +
    `${MAX_NAME} leave room for the prefix of the copy; give it a shorter name`,
});

/** Why an endpoint does not cross. Selected: the foreign cluster's own controller writes it, from the same selector. */
type Stays = 'Selected' | 'NotAPod' | 'NotExported';
type Crossing = { crosses: Endpoint } | { native: NativeEndpoint; seenAs: string } | { stays: Stays };

/**
 * The endpoint as the foreign cluster sees it. Names of things at home (its node, zone, object) mean nothing there. A pod over
 * there in a slice that people, or a controller of theirs, have written is told by its own address: no selector finds it.
 */
function cross(
  { addresses, conditions, hostname }: Endpoint,
  { addressType, metadata }: EndpointSlice,
  { network }: MirrorContext,
): Crossing {
  const isSelected = metadata.labels?.[LABEL_SLICE_MANAGED_BY] === SELECTOR_SLICE_MANAGER;
  const more = present({ conditions, hostname });
  // Consumers use the first address only; nevertheless either all addresses cross, or none does.
  const translated: string[] = [];
  const natives: string[] = [];
  for (const address of addresses) {
    if (podAddressFamily(address) !== FAMILIES[addressType]) return { stays: 'NotAPod' };
    const native = network.nativeOf(address);
    if (native !== undefined && isSelected) return { stays: 'Selected' };
    const view = network.foreignViewOf(address);
    if (native !== undefined) natives.push(native);
    else if (view !== undefined && podAddressFamily(view) !== 0) translated.push(view);
    else return { stays: 'NotExported' };
  }
  const [native] = natives;
  if (native === undefined) return { crosses: { addresses: translated, ...more } };
  if (translated.length > 0) return { stays: 'NotExported' };
  return { native: { address: native, ...more }, seenAs: addresses[0] ?? '' };
}

/** Nothing may be sent there: also a terminating endpoint must not serve as a last resort. */
const unreachable = ({ conditions, ...endpoint }: Endpoint): Endpoint => ({
  ...endpoint,
  conditions: { ...conditions, ready: false, serving: false },
});

const WHY = {
  NotAPod: 'no other cluster may be sent to such an address',
  NotExported: 'it is in no prefix that the foreign cluster has a view of',
  NoPod: 'it is an address of the foreign cluster, and no pod of this cluster has it there',
} as const;

/** The first endpoint that is left out, how many more there are, and why. */
function leftOutOf(
  { endpoints }: EndpointSlice,
  crossings: readonly Crossing[],
  copy: EndpointSlice | undefined,
): Forged<EndpointSlice>['leftOut'] {
  const withoutPod = new Set(copy?.metadata.annotations?.[ANNOTATION_NO_POD_AT]?.split(','));
  const left = crossings.flatMap((crossing, index): { address: string; why: keyof typeof WHY }[] => {
    if ('native' in crossing) {
      const isPod = !withoutPod.has(crossing.native.address);
      return isPod ? [] : [{ address: crossing.seenAs, why: 'NoPod' }];
    }
    if (!('stays' in crossing) || crossing.stays === 'Selected') return [];
    return [{ address: endpoints?.[index]?.addresses[0] ?? '', why: crossing.stays }];
  });
  const [first] = left;
  if (first === undefined) return undefined;
  const others = left.length === 1 ? '' : ` and ${left.length - 1} more`;
  return {
    reason: NOT_REFLECTED,
    message: `${first.address}${others} cannot be reached from the foreign cluster: ${WHY[first.why]}`,
  };
}
