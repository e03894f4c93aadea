/** The roles as `tributary status` shows them: those that are there, and those that an installation has and that are not. Pure. */
import { APP_NAME, CLUSTER_NAME, LABEL_APP_INSTANCE, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { isOneProcess } from '../../api/one-process.ts';
import { replicaFailureOf } from '../../api/replica-failure.ts';
import type { KubeObject } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import type { Notice } from './attention.ts';
import type { Facts } from './facts.ts';
import { clusterNameOf } from './use.ts';

export interface RoleLine {
  /** `cluster`, `gateway`, `node`, `all` where they are one process, or `peer` and of which one. */
  role: string;
  namespace: string;
  object: string;
  ready: number;
  wanted: number;
  /** The installation has it, and there is no such object. */
  isMissing?: true;
  /** Why no pod of it comes into being. */
  failure?: string;
}

/** `tributary-gateway` is the role `gateway`; an agent is named after whom it stands for. */
export const roleName = ({
  metadata,
}: {
  metadata: Pick<KubeObject['metadata'], 'name' | 'labels'>;
}): string =>
  (metadata.labels?.[LABEL_APP_INSTANCE] ?? metadata.name)
    .replace(`${APP_NAME}-`, '')
    .replace(/^peer-/, 'peer ');

type Workloads = Pick<Facts, 'deployments' | 'daemonSets' | 'use' | 'installation' | 'unreadable'>;

export function rolesOf(facts: Workloads): RoleLine[] {
  const { deployments, daemonSets, use } = facts;
  const names = new Map(
    use.map(({ virtualNode }) => [`peer ${virtualNode.metadata.name}`, `peer ${clusterNameOf(virtualNode)}`]),
  );
  const place = (object: KubeObject): Pick<RoleLine, 'role' | 'namespace'> => ({
    role: names.get(roleName(object)) ?? roleName(object),
    namespace: object.metadata.namespace ?? '',
  });
  return [
    ...deployments.map((one) => ({
      ...place(one),
      ...(isRoleCluster(one) && isOneProcess(one) && { role: 'all' }),
      object: `deployment/${one.metadata.name}`,
      ready: one.status?.readyReplicas ?? 0,
      wanted: one.spec?.replicas ?? 1,
      ...present({ failure: replicaFailureOf(one) }),
    })),
    ...daemonSets.map((one) => ({
      ...place(one),
      object: `daemonset/${one.metadata.name}`,
      ready: one.status?.numberReady ?? 0,
      wanted: one.status?.desiredNumberScheduled ?? 0,
    })),
    ...missingRoles(facts),
  ];
}

const isRoleCluster = ({ metadata }: KubeObject): boolean =>
  metadata.namespace === SYSTEM_NAMESPACE && metadata.name === CLUSTER_NAME;

function missingRoles({ installation, deployments, daemonSets, unreadable }: Workloads): RoleLine[] {
  const hidden = new Set(unreadable.map(({ what }) => what));
  return (installation?.roles ?? []).flatMap(({ kind, namespace, name }): RoleLine[] => {
    const [there, plural] = kind === 'Deployment' ? [deployments, 'deployments'] : [daemonSets, 'daemonsets'];
    const isThere = there.some(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    if (isThere || hidden.has(plural)) return [];
    const object = `${kind.toLowerCase()}/${name}`;
    return [
      { role: roleName({ metadata: { name } }), namespace, object, ready: 0, wanted: 1, isMissing: true },
    ];
  });
}

export function roleNotices({
  role,
  namespace,
  object,
  ready,
  wanted,
  isMissing,
  failure,
}: RoleLine): Notice[] {
  const about = `role ${role}`;
  if (isMissing === true) {
    const message = `it is missing: the installation has ${object}, and it is not there`;
    return [{ about, message, see: 'tributary upgrade', isWaiting: false }];
  }
  if (ready >= wanted) return [];
  const why = failure === undefined ? '' : `, and no pod can be made: ${failure}`;
  const message = `${ready} of ${wanted} pods are ready${why}`;
  return [{ about, message, see: `kubectl -n ${namespace} describe ${object}`, isWaiting: false }];
}

/** First of all, since what follows may come from it. */
export function installationNotices({ installation }: Pick<Facts, 'installation'>): Notice[] {
  const { unfinished } = installation ?? {};
  if (unfinished === undefined) return [];
  return [{ about: 'installation', message: unfinished, see: 'tributary upgrade', isWaiting: false }];
}
