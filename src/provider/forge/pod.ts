import {
  ANNOTATION_APPLIED,
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_WHEN_LOST,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
  TAINT_VIRTUAL_NODE,
} from '../../api/names.ts';
import { ownTolerations } from '../../api/node-life.ts';
import { whenLostOf } from '../../api/when-lost.ts';
import type { Draft, Pod, PodSpec, Toleration } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { withoutKeys } from '../../lib/fields.ts';
import { addedSpec, remoteAnnotations, remoteLabels, remoteTolerations } from './additions.ts';
import { appliedOf } from './applied.ts';
import { SERVICE_NAMES } from '../home-api-server.ts';
import type { ForgeContext } from './context.ts';
import { forgeDns } from './dns.ts';
import { forgeEnvironment } from './environment.ts';
import { forgePlacement } from './placement.ts';
import { type AnyContainer, remoteReferenceName } from './references.ts';
import { withRequests } from './requests.ts';
import { carriedAnnotations, carriedNamespaceOf } from './returned.ts';
import { droppedVolumes, forgeVolumes } from './volumes.ts';

/**
 * Fields about the home cluster's nodes, accounts and scheduling, which mean nothing or something else over there; some of them
 * are put in again, translated. Everything not named here travels as it is, fields unknown to this program included: the foreign
 * cluster's admission decides what it accepts.
 */
const HOME_ONLY_FIELDS = [
  'nodeName',
  'nodeSelector',
  'affinity',
  'topologySpreadConstraints',
  'schedulerName',
  'schedulingGates',
  'priority',
  'priorityClassName',
  'preemptionPolicy',
  'overhead',
  'serviceAccount',
  'serviceAccountName',
  'automountServiceAccountToken',
  // Judged at home, where the condition is set (see forge/status.ts).
  'readinessGates',
  // Cannot be set at creation; they are added later through their subresource.
  'ephemeralContainers',
  'tolerations',
] as const satisfies readonly (keyof PodSpec)[];

type PullSecret = NonNullable<PodSpec['imagePullSecrets']>[number];

/** The pod to create over there for a home pod: a pure translation. */
export function forgePod(home: Pod, context: ForgeContext): Draft<Pod> {
  const spec = home.spec ?? { containers: [] };
  const dropped = droppedVolumes(home, context);
  const forge = <C extends AnyContainer>(container: C): C =>
    forgeContainer(container, dropped, home, context);
  const volumes = forgeVolumes(home, context);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: home.metadata.name,
      namespace: context.tenantNamespace,
      labels: {
        ...remoteLabels(home, context.podAdditions),
        ...wantedMarks(home, context),
        [LABEL_HOME_UID]: home.metadata.uid,
        [LABEL_MANAGED_BY]: context.virtualNode,
      },
      annotations: {
        ...remoteAnnotations(home, context.podAdditions),
        ...carriedAnnotations(home),
        [ANNOTATION_HOME_NAMESPACE]: home.metadata.namespace ?? '',
        [ANNOTATION_APPLIED]: JSON.stringify(appliedOf(home)),
        [ANNOTATION_WHEN_LOST]: whenLostOf(home),
      },
    },
    spec: {
      ...withoutKeys(spec, HOME_ONLY_FIELDS),
      // The account belongs to the home cluster; what it may do there travels as a token (forge/tokens.ts).
      automountServiceAccountToken: false,
      ...withRequests(spec, {
        containers: spec.containers.map(forge),
        ...(spec.initContainers && { initContainers: spec.initContainers.map(forge) }),
      }),
      ...(spec.imagePullSecrets && { imagePullSecrets: spec.imagePullSecrets.map(forgePullSecret) }),
      ...forgeHostAliases(home, context),
      ...forgeDns(home, context.homeDns),
      ...forgePlacement(home, context).spec,
      ...addedSpec(spec, context.podAdditions),
      ...forgePriority(spec, context),
      tolerations: forgeTolerations(remoteTolerations(ownTolerations(home), context.podAdditions)),
      volumes,
    },
  };
}

/** Those that are to be there. */
const wantedMarks = (home: Pod, { policyMarks }: ForgeContext): Record<string, string> =>
  Object.fromEntries(
    Object.entries(policyMarks?.(home) ?? {}).flatMap(([key, value]) =>
      value === null ? [] : [[key, value]],
    ),
  );

const forgePullSecret = ({ name }: PullSecret): PullSecret =>
  name === undefined ? {} : { name: remoteReferenceName('Secret', name) };

/** A class of that name, where the provider lends one; how much it is worth there is for the provider to say. */
const forgePriority = (
  { priorityClassName }: PodSpec,
  { priorityClasses = [] }: ForgeContext,
): Pick<PodSpec, 'priorityClassName'> =>
  priorityClassName !== undefined && priorityClasses.includes(priorityClassName) ? { priorityClassName } : {};

/**
 * The names of the home API server, after what the pod itself names: of one name, the first address counts. A pod that comes back
 * to its own cluster finds its API server there by the same names, and the address that it has brought along is not of there.
 */
function forgeHostAliases(home: Pod, { homeApiServer }: ForgeContext): Pick<PodSpec, 'hostAliases'> {
  const { hostAliases = [] } = home.spec ?? {};
  if (carriedNamespaceOf(home) !== undefined) {
    return { hostAliases: hostAliases.filter(({ hostnames }) => !deepEqual(hostnames, SERVICE_NAMES)) };
  }
  const { alias } = homeApiServer ?? {};
  if (alias === undefined) return {};
  return { hostAliases: [...hostAliases, { ip: alias, hostnames: [...SERVICE_NAMES] }] };
}

/**
 * A toleration of everything, and the one for virtual nodes, concern the home cluster's taints. Over there they would open the
 * foreign cluster's reserved nodes, or send the pod on to a third cluster.
 */
export function forgeTolerations(tolerations: readonly Toleration[]): Toleration[] {
  return tolerations.filter(({ key }) => key !== undefined && key !== '' && key !== TAINT_VIRTUAL_NODE);
}

/** The container without mounts of dropped volumes, and with its environment as at home. */
export function forgeContainer<C extends AnyContainer>(
  container: C,
  dropped: ReadonlySet<string>,
  home: Pod,
  context: ForgeContext,
): C {
  const forged = forgeEnvironment(container, home, context);
  if (dropped.size === 0 || forged.volumeMounts === undefined) return forged;
  return { ...forged, volumeMounts: forged.volumeMounts.filter((mount) => !dropped.has(mount.name)) };
}
