import { type DefaultRequests, defaultRequestsOf } from '../../api/default-requests.ts';
import type { Manifest, ManifestOf } from '../../api/manifest.ts';
import type { ReflectableKind } from '../../api/reflection.ts';
import type { ContainerLimits } from '../../api/sharing-policy.ts';
import type { ResourceList, Stored } from '../../api/wire.ts';
import { TributaryError } from '../../lib/errors.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import type * as models from '@kubernetes/client-node';

type ResourceQuota = Stored<models.V1ResourceQuota>;

/** Not client-node's type: that one renames `default`, which on the wire is `default`. */
interface LimitRange extends Manifest {
  spec: {
    limits: { type: 'Container'; defaultRequest: ResourceList; default?: ResourceList; max?: ResourceList }[];
  };
}

/** What a tenant gets where nobody says otherwise. */
export const DEFAULT_QUOTA: Readonly<ResourceList> = { cpu: '4', memory: '8Gi', pods: '100' };

/**
 * Bounds besides what was agreed. A peer has no right to make most of these; the zeros still hold if somebody binds it to a
 * wider role.
 */
const BOUNDS: Readonly<ResourceList> = {
  configmaps: '500',
  secrets: '500',
  services: '250',
  // Slices that our own controller makes count, too.
  'count/endpointslices.discovery.k8s.io': '1000',
  'count/ingresses.networking.k8s.io': '100',
  'services.loadbalancers': '0',
  'services.nodeports': '0',
  persistentvolumeclaims: '0',
  'requests.storage': '0',
};

/** Claims, where storage is lent at all. */
const MOST_CLAIMS = '100';

/** Limits of a container that names none, where the quota bounds limits. */
const DEFAULT_LIMITS: Readonly<ResourceList> = { cpu: '1', memory: '512Mi', 'ephemeral-storage': '1Gi' };

/** Finished pods are kept until home deletes them. With them, there may be this many times the pods that may run. */
const FINISHED_POD_FACTOR = 10;

const QUANTITY = /^([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$/;
const KEY = /^[a-z0-9]([-a-zA-Z0-9_./]*[a-zA-Z0-9])?$/;

/** Parses `cpu=4,memory=8Gi,pods=100`. What it does not name keeps its default. */
export function parseQuota(text: string): ResourceList {
  const quota: ResourceList = { ...DEFAULT_QUOTA };
  for (const part of text.split(',').filter((piece) => piece !== '')) {
    const [key = '', amount = '', ...rest] = part.split('=').map((piece) => piece.trim());
    if (rest.length > 0 || !KEY.test(key) || !QUANTITY.test(amount)) {
      throw new TributaryError(
        'Invalid',
        `quota "${part}" is not of the form resource=quantity, as in memory=8Gi`,
      );
    }
    quota[key] = amount;
  }
  if (!/^[1-9][0-9]{0,5}$/.test(quota['pods'] ?? '')) {
    throw new TributaryError('Invalid', `quota pods=${quota['pods']} is not a number from 1 to 999999`);
  }
  return quota;
}

/** The key in a ResourceQuota: `cpu` means requests of CPU, and an extended resource can be bounded only by its requests. */
function quotaKey(resource: string): string {
  const isRequest = ['cpu', 'memory', 'ephemeral-storage'].includes(resource);
  const isExtended = resource.includes('/') && !/^(requests\.|limits\.|count\/)/.test(resource);
  return isRequest || isExtended ? `requests.${resource}` : resource;
}

/** How many objects of each further kind, which a SharingPolicy lets in, a tenant may have. */
export const FURTHER_OBJECTS = '500';

export const boundsOfKinds = (kinds: readonly ReflectableKind[]): ResourceList =>
  Object.fromEntries(kinds.map(({ group, resource }) => [`count/${resource}.${group}`, FURTHER_OBJECTS]));

/** Name of the ResourceQuota in each tenant namespace. */
export const QUOTA_NAME = 'tributary';

export function forgeQuota(
  namespace: string,
  labels: Record<string, string>,
  quota: ResourceList,
): ManifestOf<ResourceQuota> {
  const agreed = Object.fromEntries(Object.entries(quota).map(([key, amount]) => [quotaKey(key), amount]));
  const claims = 'requests.storage' in agreed ? { persistentvolumeclaims: MOST_CLAIMS } : {};
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: QUOTA_NAME, namespace, labels },
    spec: {
      hard: {
        ...BOUNDS,
        'count/pods': String(Math.floor(parseQuantity(quota['pods'] ?? '0')) * FINISHED_POD_FACTOR),
        ...claims,
        ...agreed,
      },
    },
  };
}

interface ContainerDefaults {
  defaultRequests?: DefaultRequests | undefined;
  /** No container has higher limits, and one without limits has these. */
  containerLimits?: ContainerLimits | undefined;
}

/**
 * Defaults for whatever the quota counts: without requests, though they may be zero, a quota on requests would refuse the pod.
 * All that it counts are named, so that an earlier default never stays. No default limits unless the quota or the policy bounds
 * limits: a limit that nobody wrote would end pods here that run at home. Under pressure, a node first evicts pods that exceed their
 * requests anyway.
 */
export function forgeLimits(
  namespace: string,
  labels: Record<string, string>,
  quota: ResourceList,
  { defaultRequests, containerLimits = {} }: ContainerDefaults = {},
): LimitRange {
  const counted = new Set(Object.keys(quota).map(quotaKey));
  const pick = (section: 'requests' | 'limits', amounts: Readonly<ResourceList>): ResourceList =>
    Object.fromEntries(Object.entries(amounts).filter(([key]) => counted.has(`${section}.${key}`)));
  const limits = { ...pick('limits', DEFAULT_LIMITS), ...containerLimits };
  return {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'tributary', namespace, labels },
    spec: {
      limits: [
        {
          type: 'Container',
          defaultRequest: pick('requests', defaultRequestsOf(defaultRequests)),
          ...(Object.keys(limits).length > 0 && { default: limits }),
          ...(Object.keys(containerLimits).length > 0 && { max: containerLimits }),
        },
      ],
    },
  };
}
