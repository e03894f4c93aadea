/** The last half of an uninstallation: the objects of Tributary itself, in the reverse order of their installation. */
import {
  AGENTS_NAMESPACE,
  LABEL_APP_NAME,
  APP_NAME,
  type Manifest,
  SYSTEM_NAMESPACE,
} from '../../api/manifest.ts';
import { LABEL_INSTALLATION, LABEL_PEER, LABEL_PROVIDER } from '../../api/names.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  flowSchemas,
  leases,
  nodes,
  pods,
  type ResourceType,
  roleBindings,
  roles,
} from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import { UNINSTALL_NAME } from '../../deploy/installation/uninstall-hook.ts';
import { forgeInstallation, keyOf } from '../../deploy/installation/objects.ts';
import { defaultValues, VALUE_NAMES, VALUES } from '../../deploy/installation/values.ts';
import { typeOf } from '../../kube/apply.ts';
import { listed, nameOf, remove, removeAll } from './objects.ts';
import { type InstallSession, mustBe, someOf } from './waiting.ts';

const GONE_MS = 180_000;

/** All that a version such as this one can have installed, whatever its values; in the order of application. */
export function everyObject(): Manifest[] {
  const switches = VALUE_NAMES.filter((name) => VALUES[name].kind === 'switch');
  const on = Object.fromEntries(switches.map((name) => [name, true]));
  const every = { ...defaultValues(), ...on, image: 'none' };
  const objects = [true, false].flatMap((oneProcess) => forgeInstallation({ ...every, oneProcess }));
  return [...new Map(objects.map((object) => [keyOf(object), object])).values()];
}

/** Kinds that an installation consists of, each once, in the order of application. */
export const installedTypes = (): ResourceType<KubeObject>[] => [...new Set(everyObject().map(typeOf))];

/** With the label of an installation, but none of these: what another version had. */
export async function othersInstalled(
  session: InstallSession,
  wanted: readonly Manifest[],
): Promise<Manifest[]> {
  const keys = new Set(wanted.map(keyOf));
  const others: Manifest[] = [];
  for (const type of installedTypes()) {
    for (const { metadata } of await listed(session, type, { labelSelector: LABEL_INSTALLATION })) {
      const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
      const object = { apiVersion, kind: type.kind, metadata };
      if (!keys.has(keyOf(object))) others.push(object);
    }
  }
  return others;
}

const isLast = ({ kind }: Manifest): boolean => ['CustomResourceDefinition', 'Namespace'].includes(kind);
const isWebhook = ({ kind }: Manifest): boolean => kind.endsWith('WebhookConfiguration');

export async function removeInstallation(session: InstallSession): Promise<void> {
  const known = everyObject();
  const all = [...known, ...(await othersInstalled(session, known))];
  // They speak of a program that is about to be gone.
  await removeThese(session, all.filter(isWebhook), 'webhooks');
  const workloads = all.filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind));
  await removeThese(session, workloads, 'roles');
  await removeAgents(session);
  const rest = all.filter((object) => !isLast(object) && !isWebhook(object) && !workloads.includes(object));
  await removeThese(session, rest, 'rights, fences and Services');
  await removeLeftovers(session);
  await removeLast(session, all, 'CustomResourceDefinition', 'kinds');
  await removeLast(session, all, 'Namespace', 'namespaces');
}

async function removeThese(
  session: InstallSession,
  objects: readonly Manifest[],
  what: string,
): Promise<void> {
  let count = 0;
  for (const object of objects.toReversed()) if (await remove(session, object)) count += 1;
  if (count > 0) session.io.out(`removed ${count} ${what}\n`);
}

/** Agents end before their rights do: on a signal they make their node unready, and do not fail at it. */
async function removeAgents(session: InstallSession): Promise<void> {
  await mustBe(session, {
    what: 'for our pods to end',
    timeoutMs: GONE_MS,
    look: async () => {
      const left: string[] = [];
      for (const namespace of [SYSTEM_NAMESPACE, AGENTS_NAMESPACE]) {
        const labelSelector = `${LABEL_APP_NAME}=${APP_NAME},app.kubernetes.io/instance!=${UNINSTALL_NAME}`;
        left.push(
          ...(await listed(session, pods, { namespace, labelSelector })).map(({ metadata }) => metadata.name),
        );
      }
      return someOf(left);
    },
  });
}

/** What roles have made outside of our namespaces; with peerings that ended in order there is none of it. */
const LEFTOVERS: readonly (readonly [
  type: ResourceType<KubeObject>,
  labelSelector: string,
  namespace?: string,
])[] = [
  [roleBindings, `${LABEL_PROVIDER},${LABEL_APP_NAME}=${APP_NAME}`],
  [roles, `${LABEL_PROVIDER},${LABEL_APP_NAME}=${APP_NAME}`],
  [clusterRoleBindings, `${LABEL_PEER},${LABEL_APP_NAME}=${APP_NAME}`],
  [clusterRoles, `${LABEL_PEER},${LABEL_APP_NAME}=${APP_NAME}`],
  [flowSchemas, `${LABEL_PEER},${LABEL_APP_NAME}=${APP_NAME}`],
  [nodes, `${LABEL_PROVIDER},tributary.dev/node-type=virtual-node`],
  [leases, LABEL_PROVIDER, 'kube-node-lease'],
];

async function removeLeftovers(session: InstallSession): Promise<void> {
  for (const [type, labelSelector, namespace] of LEFTOVERS) {
    const options = { labelSelector, ...(namespace !== undefined && { namespace }) };
    const count = await removeAll(session, type, options);
    if (count > 0) session.io.out(`removed ${count} ${type.kind} that peerings have left\n`);
  }
}

/** Deletes those of a kind and waits: what comes next must not go before. */
async function removeLast(
  session: InstallSession,
  all: readonly Manifest[],
  kind: string,
  what: string,
): Promise<void> {
  const objects = all.filter((object) => object.kind === kind);
  await removeThese(session, objects, what);
  const [first] = objects;
  if (first === undefined) return;
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  const type = typeOf(first);
  await mustBe(session, {
    what: `for ${what} to go`,
    timeoutMs: GONE_MS,
    look: async () => {
      const left = (await listed(session, type)).filter(({ metadata }) => names.has(metadata.name));
      return someOf(left.map(({ metadata }) => `${nameOf({ kind, metadata })}${conditionOf(metadata)}`));
    },
  });
}

const conditionOf = ({ finalizers = [] }: KubeObject['metadata']): string =>
  finalizers.length === 0 ? '' : ` (finalizers ${finalizers.join(', ')})`;
