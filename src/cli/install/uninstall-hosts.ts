/** What the roles `gateway` and `node`, or one process for all, have left in the kernels of the hosts. */
import { CLUSTER_NAME, LABEL_APP_INSTANCE, type Manifest, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { isOneProcess } from '../../api/one-process.ts';
import { daemonSets, deployments, namespaces, pods } from '../../api/resources.ts';
import { applyManifests } from '../../kube/apply.ts';
import { CLEAN_UP_NAME, forgeCleanUp } from '../../deploy/node.ts';
import { NETWORK_NAMESPACE } from '../../deploy/program.ts';
import { GATEWAY_NAME, NODE_NAME } from '../../deploy/rights/cluster.ts';
import { found, listed, remove } from './objects.ts';
import { installedOf } from './versions.ts';
import { type InstallSession, mustBe, someOf, waitFor } from './waiting.ts';

const GONE_MS = 120_000;

/** The image of the installed roles; a clean-up needs the same program. An uninstallation that was interrupted has left only the values. */
export async function installedImage(session: InstallSession): Promise<string | undefined> {
  const named = [
    [deployments, { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME }],
    [deployments, { namespace: NETWORK_NAMESPACE, name: GATEWAY_NAME }],
    [daemonSets, { namespace: NETWORK_NAMESPACE, name: NODE_NAME }],
    [daemonSets, { namespace: NETWORK_NAMESPACE, name: CLEAN_UP_NAME }],
  ] as const;
  for (const [type, ref] of named) {
    const object = await found(session, type as typeof deployments, ref);
    const image = object?.spec?.template.spec?.containers[0]?.image;
    if (image !== undefined) return image;
  }
  const image = (await installedOf(session))?.values['image'];
  return typeof image === 'string' ? image : undefined;
}

/** Ends these roles, and cleans every host; returns what was not done. */
export async function cleanHosts(
  session: InstallSession,
  { image, timeoutMs }: { image: string | undefined; timeoutMs: number },
): Promise<string> {
  const { client, io, signal } = session;
  if ((await found(session, namespaces, { name: NETWORK_NAMESPACE })) === undefined) return '';
  await endRoles(session);
  const cleanUp = forgeCleanUp({ image: image ?? 'unknown' }).find(({ kind }) => kind === 'DaemonSet');
  if (cleanUp === undefined) return '';
  if (image === undefined) {
    return 'no host was cleaned: no role is installed that names an image; give one with --image';
  }
  io.out('cleaning the network of every host\n');
  await applyManifests(client, [cleanUp], { signal });
  const missing = await waitFor(session, {
    what: 'for hosts to be clean',
    timeoutMs,
    look: async () => {
      const { status, metadata } = (await found(session, daemonSets, refOf(cleanUp))) ?? {};
      if (status === undefined || (status.observedGeneration ?? 0) < (metadata?.generation ?? 0)) {
        return 'the DaemonSet has not begun';
      }
      const { desiredNumberScheduled: wanted, numberReady: ready } = status;
      return ready >= wanted ? '' : `${ready} of ${wanted} are; ${await waitingPods(session)}`;
    },
  });
  await remove(session, cleanUp, 'Foreground');
  await untilNoPods(session, 'for the clean-up to end');
  return missing === '' ? '' : `not every host was cleaned: ${missing}`;
}

const refOf = ({ metadata }: Manifest): { namespace: string; name: string } => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** They would set up again what is cleaned. */
async function endRoles(session: InstallSession): Promise<void> {
  const roles = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: NETWORK_NAMESPACE, name: 'tributary-gateway' },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { namespace: NETWORK_NAMESPACE, name: 'tributary-node' },
    },
  ];
  const cluster = { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME };
  const isOne = isOneProcess(await found(session, deployments, cluster));
  const one = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: cluster };
  for (const role of isOne ? [...roles, one] : roles) {
    if (await remove(session, role)) session.io.out(`removed ${role.kind} ${role.metadata.name}\n`);
  }
  const labelSelector = `${LABEL_APP_INSTANCE}=${CLUSTER_NAME}`;
  if (isOne) await untilNoPods(session, 'for the process of all roles to end', { ...cluster, labelSelector });
  await untilNoPods(session, 'for gateways and routers to end', {
    labelSelector: `${LABEL_APP_INSTANCE}!=${CLEAN_UP_NAME}`,
  });
}

async function untilNoPods(
  session: InstallSession,
  what: string,
  { namespace = NETWORK_NAMESPACE, labelSelector }: { namespace?: string; labelSelector?: string } = {},
): Promise<void> {
  const options = { namespace, ...(labelSelector !== undefined && { labelSelector }) };
  await mustBe(session, {
    what,
    timeoutMs: GONE_MS,
    look: async () => someOf((await listed(session, pods, options)).map(({ metadata }) => metadata.name)),
  });
}

/** Which nodes, and why. */
async function waitingPods(session: InstallSession): Promise<string> {
  const all = await listed(session, pods, { namespace: NETWORK_NAMESPACE });
  const waiting = all.filter(
    ({ status }) => !status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  );
  const lines = waiting.map(({ spec, status }) => {
    const state = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
    const reason = state.map((one) => one.state?.waiting?.reason).find((one) => one !== undefined);
    return `${spec?.nodeName ?? 'no node'} (${reason ?? status?.phase ?? 'unknown'})`;
  });
  return someOf(lines);
}
