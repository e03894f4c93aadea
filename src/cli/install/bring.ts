/** From objects that are wanted to roles that run, in an order in which it may be killed at any moment and repeated. */
import { timestamp } from '../../api/conditions.ts';
import type { ChangeState } from '../../api/installation-record.ts';
import type { Manifest } from '../../api/manifest.ts';
import { definitions } from '../../api/resources.ts';
import type { InstallValues } from '../../deploy/installation/values.ts';
import { typeOf } from '../../kube/apply.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { VERSION } from '../../version.ts';
import { found, nameOf, remove } from './objects.ts';
import { namespacesInTurn, untilNoneNeedsMore } from './pod-security.ts';
import { isRole, untilReady } from './rollout.ts';
import { othersInstalled } from './uninstall-objects.ts';
import { forgeInstalled, type Installed, installedOf } from './versions.ts';
import { type InstallSession, mustBe, someOf } from './waiting.ts';
import { untilWireGuard } from './wireguard.ts';

/** Apart from that of role `cluster`: an apply takes away fields of its own manager only. */
const FIELD_MANAGER = 'tributary-install';
const UNFINISHED =
  'A part of it is in the cluster. To go on, run the same command again. To take it out: tributary uninstall\n';
/** How long an API server may take to serve a kind. */
const KINDS_MS = 30_000;

export interface Bringing {
  readonly objects: readonly Manifest[];
  readonly values: InstallValues;
  readonly timeoutMs: number;
  /** Something ran here before. */
  readonly isReplacement: boolean;
  /** Its roles are replaced one after the other: the same ones. */
  readonly isInTurn: boolean;
}

/**
 * What is wanted is recorded before anything but namespaces is touched, and only at the end as what is installed: so whoever repeats it
 * after a kill goes on with it. Throws what has stopped it.
 */
export async function bring(session: InstallSession, bringing: Bringing): Promise<void> {
  const { objects, values, isReplacement } = bringing;
  const spaces = await namespacesInTurn(session, objects.filter(isNamespace));
  await applyPart(session, 'namespaces', spaces.first);
  // Before the first roles run, there is nothing to go back to.
  const before = isReplacement ? await installedOf(session) : undefined;
  const since = timestamp(session.clock.now());
  const record = async (state?: ChangeState): Promise<void> =>
    apply(session, recordOf(bringing, { before, state, since }));
  await record('UnderWay');
  try {
    await bringObjects(session, bringing, before);
    for (const namespace of spaces.last) {
      await untilNoneNeedsMore(session, namespace, { timeoutMs: bringing.timeoutMs, advice: ADVICE });
      await apply(session, namespace);
    }
    await untilWireGuard(session, values, bringing.timeoutMs);
  } catch (error) {
    // Whoever interrupts it is to go on with it. Where not even this can be written, it counts as interrupted.
    if (session.signal.aborted) session.io.err(UNFINISHED);
    else await record(isReplacement ? 'Failed' : undefined).catch(() => undefined);
    throw error;
  }
  await apply(session, forgeInstalled(VERSION, values));
}

/** Without a state: what is wanted is what is installed. */
function recordOf(
  { values }: Bringing,
  { before, state, since }: { before: Installed | undefined; state: ChangeState | undefined; since: string },
): Manifest {
  const wanted = { version: VERSION, values };
  if (state === undefined) return forgeInstalled(VERSION, values);
  const there = before ?? wanted;
  return forgeInstalled(there.version, there.values, { ...wanted, values: { ...values }, state, since });
}

async function bringObjects(
  session: InstallSession,
  bringing: Bringing,
  before: Installed | undefined,
): Promise<void> {
  const { objects, values } = bringing;
  const kinds = objects.filter(isKind);
  await applyPart(session, 'kinds', kinds);
  await untilServed(session, kinds);
  const others = objects.filter((one) => !isKind(one) && !isNamespace(one) && !isRole(one));
  await applyPart(session, 'rights, fences and Services', others);
  // Gateway and router of a host make way for the one process that does what they did, as soon as it comes.
  if (values.oneProcess)
    await removeOthers(session, (await othersInstalled(session, objects)).filter(isRole));
  await bringRoles(session, bringing, before);
  await removeOthers(session, await othersInstalled(session, objects));
}

async function applyPart(session: InstallSession, what: string, part: readonly Manifest[]): Promise<void> {
  for (const object of part) await apply(session, object);
  session.io.out(`applied: ${part.length} ${what}\n`);
}

const isKind = ({ kind }: Manifest): boolean => kind === 'CustomResourceDefinition';
const isNamespace = ({ kind }: Manifest): boolean => kind === 'Namespace';

async function removeOthers(session: InstallSession, others: readonly Manifest[]): Promise<void> {
  for (const object of others.toReversed()) await remove(session, object);
  if (others.length > 0)
    session.io.out(`removed what this version and these values do not have: ${someOf(others.map(nameOf))}\n`);
}

/** New ones all at once. Of those that run, the next is not touched before the last one runs again. */
async function bringRoles(
  session: InstallSession,
  { objects, timeoutMs, isReplacement, isInTurn }: Bringing,
  before: Installed | undefined,
): Promise<void> {
  const roles = objects.filter(isRole);
  const advice = isReplacement ? adviceAfterReplacement(before) : ADVICE;
  const ready = async (role: Manifest): Promise<void> => untilReady(session, role, { timeoutMs, advice });
  for (const role of roles) {
    await apply(session, role);
    if (isInTurn) await ready(role);
  }
  if (isInTurn) return;
  session.io.out(`applied: ${roles.length} roles\n`);
  for (const role of roles) await ready(role);
}

const ADVICE =
  'All objects are applied, and nothing was taken back: it becomes ready by itself when the cause is gone. Or give other values, ' +
  'such as --image, and run the same command again';

function adviceAfterReplacement(before: Installed | undefined): string {
  if (before === undefined) return ADVICE;
  const { image } = before.values;
  const program = before.version === VERSION ? '' : `, by the program of version ${before.version}`;
  return (
    'Roles after it are still those of before. It becomes ready by itself when the cause is gone. To go back to the values of before ' +
    `(image ${String(image)})${program}: tributary upgrade --yes`
  );
}

async function apply({ client, signal }: InstallSession, object: Manifest): Promise<void> {
  const { name = '', namespace } = object.metadata;
  const body = { type: 'apply', body: object, fieldManager: FIELD_MANAGER, force: true } as const;
  try {
    await client.patch(typeOf(object), { name, ...(namespace !== undefined && { namespace }) }, body, {
      signal,
    });
  } catch (error) {
    if (hasCode(error, 'Aborted')) throw error;
    throw new TributaryError('Unavailable', `${nameOf(object)} was not applied`, { cause: error });
  }
}

async function untilServed(session: InstallSession, kinds: readonly Manifest[]): Promise<void> {
  await mustBe(session, {
    what: 'for the API server to serve our kinds',
    timeoutMs: KINDS_MS,
    look: async () => {
      const waiting: string[] = [];
      for (const { metadata } of kinds) {
        const object = await found(session, definitions, { name: metadata.name ?? '' });
        const is = object?.status?.conditions?.some(
          ({ type, status }) => type === 'Established' && status === 'True',
        );
        if (is !== true) waiting.push(metadata.name ?? '');
      }
      return someOf(waiting);
    },
  });
}
