/** From what a peer asks for in its EndpointSlices to endpoints of its own pods here. Pure. */
import { isIP } from 'node:net';

import {
  ANNOTATION_NATIVE_ENDPOINTS,
  ANNOTATION_NO_POD_AT,
  LABEL_HOME_UID,
  LABEL_SERVICE_NAME,
  LABEL_SLICE_MANAGED_BY,
  NATIVE_SLICE_MANAGER,
} from '../../api/names.ts';
import { type NativeEndpoint, parseNativeEndpoints } from '../../api/native-endpoints.ts';
import type { Draft, Endpoint, EndpointSlice, Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode } from '../../lib/errors.ts';
import { present, withoutKeys } from '../../lib/fields.ts';
import { MAX_PAIRS } from '../policies/services.ts';

const LABEL_HEADLESS = 'service.kubernetes.io/headless';
/** How many addresses without a pod are named to the peer. */
const MAX_NAMED = 20;

/** Keeps of a pod of a peer what tells at which addresses it is. */
export function slimGuest({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels } = metadata;
  const homeUid = labels?.[LABEL_HOME_UID];
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...present({ namespace }),
      labels: present({ [LABEL_HOME_UID]: homeUid }),
    },
    spec: present({ nodeName: spec?.nodeName, hostNetwork: spec?.hostNetwork }),
    status: present({ phase: status?.phase, podIPs: status?.podIPs }),
  } as Pod;
}

/** What a slice of a peer asks for. What is not of that form asks for nothing. */
export function nativesOf({ metadata }: EndpointSlice): NativeEndpoint[] {
  const text = metadata.annotations?.[ANNOTATION_NATIVE_ENDPOINTS];
  if (text === undefined || metadata.deletionTimestamp !== undefined) return [];
  try {
    return parseNativeEndpoints(text);
  } catch (error) {
    if (hasCode(error, 'Invalid')) return [];
    throw error;
  }
}

/** By the UID of the peer's slice: one that is made anew is another one. */
export const nativeSliceName = ({ metadata }: EndpointSlice): string => `tributary-native-${metadata.uid}`;

interface Resolved {
  /** Undefined where no address is that of a pod. */
  slice: Draft<EndpointSlice> | undefined;
  /** Addresses at which there is no pod. */
  without: string[];
}

/** @param podAt a pod of the same peer with that address */
export function resolveNatives(source: EndpointSlice, podAt: (address: string) => Pod | undefined): Resolved {
  const ports = source.ports ?? [];
  const most = Math.floor(MAX_PAIRS / Math.max(1, ports.length));
  // As with a selector, a pod is an endpoint once.
  const natives = new Map(nativesOf(source).map((native) => [native.address, native]));
  const without: string[] = [];
  const endpoints: Endpoint[] = [];
  for (const native of natives.values()) {
    const isOfFamily = `IPv${isIP(native.address)}` === source.addressType;
    const pod = isOfFamily ? podAt(native.address) : undefined;
    if (pod === undefined) without.push(native.address);
    else if (endpoints.length < most) endpoints.push(endpointOf(native, pod));
  }
  const headless = source.metadata.labels?.[LABEL_HEADLESS];
  const { name, namespace = '', uid, labels } = source.metadata;
  const slice: Draft<EndpointSlice> = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: nativeSliceName(source),
      namespace,
      labels: {
        [LABEL_SERVICE_NAME]: labels?.[LABEL_SERVICE_NAME] ?? '',
        [LABEL_SLICE_MANAGED_BY]: NATIVE_SLICE_MANAGER,
        ...(headless !== undefined && { [LABEL_HEADLESS]: headless }),
      },
      ownerReferences: [
        { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', name, uid, controller: true },
      ],
    },
    addressType: source.addressType,
    endpoints,
    ports,
  };
  return { slice: endpoints.length === 0 ? undefined : slice, without };
}

/** Conditions are the peer's to say, as for a slice that people write; where the pod is, is ours. */
function endpointOf({ address, hostname, conditions }: NativeEndpoint, { metadata, spec }: Pod): Endpoint {
  const { name, namespace, uid } = metadata;
  return {
    addresses: [address],
    ...present({ hostname, conditions, nodeName: spec?.nodeName }),
    targetRef: { kind: 'Pod', name, uid, ...present({ namespace }) },
  };
}

/** The slice as it should be; undefined where nothing is wrong. */
export function mendedNative(
  current: EndpointSlice,
  { metadata, endpoints, ports = [] }: Draft<EndpointSlice>,
): EndpointSlice | undefined {
  const { labels = {}, ownerReferences = [] } = metadata;
  const mended: EndpointSlice = {
    ...current,
    metadata: { ...current.metadata, labels: { ...current.metadata.labels, ...labels }, ownerReferences },
    endpoints,
    // The API server stores an empty list as null.
    ports: ports.length === 0 && (current.ports ?? []).length === 0 ? current.ports : ports,
  } as EndpointSlice;
  return deepEqual(mended, current) ? undefined : mended;
}

/** Whether an endpoint to which traffic may go now is to get none: its pod has gone, or is not ready. */
export function losesEndpoints(
  { endpoints }: EndpointSlice,
  next: Pick<Draft<EndpointSlice>, 'endpoints'>,
): boolean {
  const stay = new Set((next.endpoints ?? []).filter(isOpen).map(identityOf));
  return (endpoints ?? []).some((endpoint) => isOpen(endpoint) && !stay.has(identityOf(endpoint)));
}

const isOpen = ({ conditions }: Endpoint): boolean =>
  conditions?.ready !== false || conditions.serving === true;
const identityOf = ({ addresses, targetRef }: Endpoint): string =>
  `${addresses[0] ?? ''} ${targetRef?.uid ?? ''}`;

/** The peer's slice, saying at which addresses it has no pod; undefined where it says so already. */
export function sayingWithout(source: EndpointSlice, without: readonly string[]): EndpointSlice | undefined {
  const { metadata } = source;
  const said = without.slice(0, MAX_NAMED).join(',');
  if ((metadata.annotations?.[ANNOTATION_NO_POD_AT] ?? '') === said) return undefined;
  const others = withoutKeys(metadata.annotations ?? {}, [ANNOTATION_NO_POD_AT]);
  const annotations = said === '' ? others : { ...others, [ANNOTATION_NO_POD_AT]: said };
  return { ...source, metadata: { ...metadata, annotations } };
}
