/**
 * A change of what pods of a namespace may do, in an order that leaves no pod without a way back: it is made looser before the first pod
 * that needs more, and stricter after the last one is gone. An upgrade may end half-way, and a pod that is deleted then comes again.
 */
import { LABEL_APP_NAME, APP_NAME, type Manifest } from '../../api/manifest.ts';
import { namespaces, pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { found, listed } from './objects.ts';
import { type InstallSession, mustBe, someOf } from './waiting.ts';

export const LABEL_LEVEL = 'pod-security.kubernetes.io/enforce';
/** From the loosest on. */
const LEVELS = ['privileged', 'baseline', 'restricted'];

type Labels = Readonly<Record<string, string>> | undefined;

/** How strict; nothing is refused where nothing is said. */
const strictness = (labels: Labels): number => Math.max(0, LEVELS.indexOf(labels?.[LABEL_LEVEL] ?? ''));

/** The namespace as it may be while pods of before and of after run side by side. `now`: its labels; undefined where it is not there. */
export function whileChanging(wanted: Manifest, now: Labels): Manifest {
  const { metadata } = wanted;
  const isStricter = now !== undefined && strictness(metadata.labels) > strictness(now);
  if (!isStricter) return wanted;
  const level = LEVELS[strictness(now)] ?? '';
  return { ...wanted, metadata: { ...metadata, labels: { ...metadata.labels, [LABEL_LEVEL]: level } } };
}

/** Whether it has something of what our pods have only where a namespace is `privileged`. */
export function needsPrivileges({ spec }: Pick<Pod, 'spec'>): boolean {
  const { hostNetwork, volumes = [], containers = [], initContainers = [] } = spec ?? {};
  return (
    hostNetwork === true ||
    volumes.some(({ hostPath }) => hostPath !== undefined) ||
    [...containers, ...initContainers].some(
      ({ securityContext: { privileged, capabilities } = {} }) =>
        privileged === true || (capabilities?.add ?? []).length > 0,
    )
  );
}

/** Pairs of what may be applied now and, where that is looser than what is wanted, what is to be applied at the end. */
export async function namespacesInTurn(
  session: InstallSession,
  wanted: readonly Manifest[],
): Promise<{ readonly first: Manifest[]; readonly last: Manifest[] }> {
  const first: Manifest[] = [];
  const last: Manifest[] = [];
  for (const namespace of wanted) {
    const there = await found(session, namespaces, { name: namespace.metadata.name ?? '' });
    const meanwhile = whileChanging(namespace, there && (there.metadata.labels ?? {}));
    first.push(meanwhile);
    if (meanwhile !== namespace) last.push(namespace);
  }
  return { first, last };
}

/** Waits until none of our pods in these namespaces needs what they are about to forbid. */
export async function untilNoneNeedsMore(
  session: InstallSession,
  { metadata: { name = '' } }: Manifest,
  wait: { timeoutMs: number; advice: string },
): Promise<void> {
  await mustBe(session, {
    what: `for pods that need more than ${name} is to permit to end`,
    ...wait,
    look: async () => {
      const labelSelector = `${LABEL_APP_NAME}=${APP_NAME}`;
      const ours = await listed(session, pods, { namespace: name, labelSelector });
      return someOf(ours.filter(needsPrivileges).map(({ metadata }) => metadata.name));
    },
  });
}
