import { LABEL_HOME_UID } from '../api/names.ts';
import { containersOf } from '../api/pod.ts';
import { VIRTUAL_NODE_REASONS } from '../api/virtual-node.ts';
import type { Clock } from '../lib/clock.ts';
import { isResult, keptLogOf } from '../provider/forge/made-anew.ts';
import type { Provider } from '../provider/provider.ts';
import type { KubeletBackend, Located, PodQuestion } from '../server/kubelet/backend.ts';

/** The caches of remote pods begin to fill when the kubelet API listens already. */
const PATIENCE_MS = 5_000;
const LOOK_MS = 50;

const NOT_READ = 'its pods over there have not been read yet';

type Known = Pick<Provider, 'contact' | 'homePods' | 'namespaces' | 'tenants'>;

/** Where the bodies of home pods are. What is just being read is waited for, and nothing else. */
export const podLocator =
  (known: Known, clock: Clock): KubeletBackend['locate'] =>
  async (question, signal) => {
    const endsAt = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const { isSoonKnown, ...located } = look(known, question);
      if (!isSoonKnown || signal.aborted || clock.monotonic() >= endsAt) return located;
      await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    }
  };

function look(known: Known, { namespace, pod, container }: PodQuestion): Located & { isSoonKnown?: boolean } {
  const home = known.homePods.get(`${namespace}/${pod}`);
  if (home === undefined) return { kind: 'no pod' };
  const { uid } = home.metadata;
  if (container !== undefined && !containersOf(home).some(({ name }) => name === container))
    return { kind: 'no container', uid };
  const tenant = known.tenants.of(namespace);
  const remote = tenant?.remotePod(pod);
  // A remote pod of that name that belongs to another home pod must not be entered.
  if (tenant !== undefined && remote?.metadata.labels?.[LABEL_HOME_UID] === uid) {
    const path = `/api/v1/namespaces/${tenant.mapping.tenantNamespace}/pods/${pod}`;
    return {
      kind: 'body',
      uid,
      path,
      ...(isResult(remote) && { keptLog: keptLogOf(remote, home, container) }),
    };
  }
  const gap = gapOf(known, namespace);
  return gap === undefined ? { kind: 'no body', uid, pod: home } : { kind: 'unknown', uid, ...gap };
}

/** Why a remote pod that is in no cache may exist nevertheless; undefined when there is none. */
function gapOf(
  { contact: { state }, namespaces, tenants }: Known,
  homeNamespace: string,
): { why: string; isSoonKnown: boolean } | undefined {
  const tenant = tenants.of(homeNamespace);
  if (tenant === undefined) {
    const isComing = namespaces.watched.some((mapping) => mapping.homeNamespace === homeNamespace);
    return isComing ? { why: NOT_READ, isSoonKnown: true } : undefined;
  }
  const isStarting = state.reason === VIRTUAL_NODE_REASONS.starting;
  if (!state.ok && !isStarting) return { why: state.message, isSoonKnown: false };
  const { synced, contact } = tenant.pods;
  if (!synced) return { why: contact.error ?? NOT_READ, isSoonKnown: tenant.isFilling };
  return isStarting ? { why: state.message, isSoonKnown: true } : undefined;
}
