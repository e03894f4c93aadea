/** `tributary uninstall`: takes Tributary out of a cluster, in an order in which everything can end. */
import { claimsAbroad } from '../../api/claims-abroad.ts';
import { DIRECTIONS, type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../api/namespace-offloading.ts';
import { deployments, namespaces, persistentVolumes } from '../../api/resources.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { TributaryError } from '../../lib/errors.ts';
import { unended } from '../../lib/unended.ts';
import { agreed, YES } from '../agreement.ts';
import type { Command } from '../command.ts';
import { type CommandLine, EXIT } from '../command-line.ts';
import { parseSeconds } from '../durations.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { isEnded, orTell } from '../peering/foreign-clusters.ts';
import { helmRelease } from './helm.ts';
import { found, listed } from './objects.ts';
import { cleanHosts, installedImage } from './uninstall-hosts.ts';
import { removeInstallation } from './uninstall-objects.ts';
import {
  type Bounds,
  checkNotTethered,
  closeDoor,
  endOffloading,
  endPeerings,
  removeObjects,
  removeTenants,
} from './uninstall-peerings.ts';
import { type InstallSession, someOf } from './waiting.ts';

export interface UninstallArguments extends Bounds {
  /** Nobody is asked. */
  readonly isSure: boolean;
  /** Only what needs the running roles; Helm deletes the rest. */
  readonly isPreparation: boolean;
  /** What is in volumes in foreign clusters may be lost. */
  readonly mayDeleteVolumes: boolean;
  /** Of the clean-up; default that of the installed roles. */
  readonly image: string | undefined;
}

/** May be interrupted and run again: what to do next is read from the cluster. */
export const uninstallCommand: Command = clusterCommand({
  name: 'uninstall',
  summary: 'Take Tributary out of a cluster: end offloading and peerings, clean hosts, delete its objects.',
  about:
    'Pods come home first, as their PodDisruptionBudgets permit. Peers that do not answer are left without them. Nothing of ' +
    'Tributary stays but PersistentVolumes, which are named at the end. It may be interrupted and run again.',
  options: {
    yes: YES,
    prepare: { text: 'only what needs the running roles; all objects stay, for Helm to delete' },
    'delete-volumes': { text: 'volumes in foreign clusters are lost with their contents' },
    'drain-timeout': { value: 'DURATION', text: 'how long pods may take to come home', fallback: '5m' },
    'peer-timeout': {
      value: 'DURATION',
      text: 'how long peers may take to agree, and then the end without them',
      fallback: '60s',
    },
    image: { value: 'IMAGE', text: 'image that cleans hosts', fallback: 'that of the installed roles' },
  },
  examples: [
    { line: 'tributary uninstall', does: 'Show what ends, ask, and remove everything' },
    { line: 'tributary uninstall --yes --peer-timeout 10s', does: 'Wait for dead peers no longer than that' },
  ],
  parse,
  run: uninstall,
});

function parse(line: CommandLine): UninstallArguments {
  const { values, flags } = line;
  const ms = (option: string, otherwise: string): number =>
    parseSeconds(values[option] ?? otherwise, { option }) * 1000;
  return {
    isSure: flags.has('yes'),
    isPreparation: flags.has('prepare'),
    mayDeleteVolumes: flags.has('delete-volumes'),
    image: values['image'],
    drainMs: ms('drain-timeout', '5m'),
    peerMs: ms('peer-timeout', '60s'),
  };
}

/** Exits with EXIT.ok where nothing is left. */
export async function uninstall(args: UninstallArguments, session: Session): Promise<number> {
  const { io } = session;
  await checkNotTethered(session);
  if (!(await agrees(args, session))) {
    io.err('Nothing was changed.\n');
    return EXIT.failed;
  }
  return takeOut(args, session).catch(
    orTell(session, 'A part of it is gone. To go on, run the same command again.\n'),
  );
}

async function takeOut(args: UninstallArguments, session: Session): Promise<number> {
  const { io } = session;
  await prepare(args, session);
  const image = args.image ?? (await installedImage(session));
  const unclean = await cleanHosts(session, { image, timeoutMs: args.drainMs });
  if (args.isPreparation) {
    io.out('prepared: the objects of the installation can be deleted now, in any order\n');
  } else {
    await removeInstallation(session);
  }
  const hasVolumes = await tellVolumes(session);
  if (unclean === '') {
    const what = hasVolumes ? 'nothing else' : 'nothing';
    if (!args.isPreparation) io.out(`${what} of Tributary is left in this cluster\n`);
    return EXIT.ok;
  }
  io.err(`${unended(unclean)}. Run "tributary clean-up" on the hosts that are missing.\n`);
  return EXIT.failed;
}

/** All that needs role `cluster`. */
async function prepare(bounds: Bounds, session: InstallSession): Promise<void> {
  await closeDoor(session);
  if (!(await isRoleReady(session))) {
    if ((await listed(session, foreignClusters)).some(isOpen)) {
      session.io.err(
        'role cluster is not running: peerings end without the other side, which keeps its half\n',
      );
    }
    await removeObjects(session, { ...bounds, peerMs: 0 });
    return removeTenants(session, bounds);
  }
  await endOffloading(session, bounds);
  await endPeerings(session, bounds);
  await removeObjects(session, bounds);
  return removeTenants(session, bounds);
}

const isOpen = (cluster: ForeignCluster): boolean => !isEnded(cluster, DIRECTIONS);

async function isRoleReady(session: InstallSession): Promise<boolean> {
  const role = await found(session, deployments, { namespace: SYSTEM_NAMESPACE, name: 'tributary-cluster' });
  return (role?.status?.readyReplicas ?? 0) > 0;
}

type Volume = NonNullable<(typeof persistentVolumes)['__object']>;

const volumesOf = async (session: InstallSession): Promise<Volume[]> =>
  listed(session, persistentVolumes, { labelSelector: LABEL_MANAGED_BY });

/** Nobody is left who would delete them, and Kubernetes keeps one as long as its claim is there. Whether there are any. */
async function tellVolumes(session: Session): Promise<boolean> {
  const names = (await volumesOf(session)).map(({ metadata }) => metadata.name);
  if (names.length === 0) return false;
  session.io.out(
    session.pastable(
      `${names.length} PersistentVolume(s) stay, whose data have gone with the peerings: ${someOf(names)}. ` +
        `Delete their claims, then run: kubectl delete persistentvolumes -l ${LABEL_MANAGED_BY}\n`,
    ),
  );
  return true;
}

/** Says what will end. Throws Conflict where data would be lost without a word. */
async function agrees(args: UninstallArguments, session: Session): Promise<boolean> {
  const { io } = session;
  const [offloaded, clusters, volumes] = await Promise.all([
    listed(session, namespaceOffloadings),
    listed(session, foreignClusters),
    volumesOf(session),
  ]);
  const peers = clusters.filter(isOpen);
  const release = await helmRelease(session);
  if (release !== undefined && !args.isPreparation) {
    throw new TributaryError(
      'Conflict',
      `Helm has installed it: run helm uninstall ${release.name} --namespace ${release.namespace} --wait --timeout 20m`,
    );
  }
  const claims = claimsAbroad(volumes);
  if (claims.length > 0 && !args.mayDeleteVolumes) {
    throw new TributaryError(
      'Conflict',
      `nothing was changed: what is in ${claims.length} volume(s) in foreign clusters would be lost, of the claims ${someOf(claims)}. ` +
        'Save what you need and delete the claims (where one is gone, the PersistentVolume), or add --delete-volumes',
    );
  }
  const isThere = (await found(session, namespaces, { name: SYSTEM_NAMESPACE })) !== undefined;
  io.out(
    `${isThere ? 'Tributary will be removed' : 'What is left of Tributary will be removed'} from this cluster: ` +
      `${offloaded.length} offloaded namespace(s)${offloaded.length > 0 ? ` (${someOf(offloaded.map(({ metadata }) => metadata.namespace ?? ''))})` : ''}, ` +
      `${peers.length} peering(s), the network of all hosts, its objects and kinds.\n`,
  );
  return args.isSure || agreed(session, { question: 'Go on?' });
}
