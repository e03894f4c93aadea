import type { ContainerStatus, Pod } from '../../api/wire.ts';
import type { Refusal } from './pod-path.ts';
import type { StreamRequest } from './stream-request.ts';

/**
 * What a kubelet says of a pod for which its container runtime has nothing: it waits to be begun, or what ran for it has been
 * removed. Pure.
 */

const quoted = (name: string | undefined): string => JSON.stringify(name ?? '');

/** As pkg/kubelet/kubelet_pods.go, validateContainerLogStatus, from what home shows. */
export function logWithoutBody(pod: Pod, container: string | undefined, isPrevious: boolean): Refusal {
  const what = `container ${quoted(container)} in pod ${quoted(pod.metadata.name)}`;
  const {
    containerStatuses = [],
    initContainerStatuses = [],
    ephemeralContainerStatuses = [],
  } = pod.status ?? {};
  const found = [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    ({ name }) => name === container,
  );
  if (found === undefined) return { status: 400, text: `${what} is not available${causeOf(pod)}` };
  const last = found.lastState?.terminated;
  if (isPrevious) {
    const text = last?.containerID ? removed(last.containerID) : `previous terminated ${what} not found`;
    return { status: 400, text };
  }
  return { status: 400, text: presentLog(what, found) };
}

function presentLog(what: string, { containerID, state, lastState }: ContainerStatus): string {
  const { running, terminated, waiting } = state ?? {};
  const last = lastState?.terminated;
  if (running !== undefined) return removed(containerID);
  if (terminated !== undefined || last !== undefined) {
    const ended = terminated?.containerID || last?.containerID;
    return ended ? removed(ended) : `${what} is terminated`;
  }
  if (waiting === undefined) return `${what} is waiting to start - no logs yet`;
  const { reason = '' } = waiting;
  return `${what} is waiting to start: ${PULLING[reason] ?? reason}`;
}

const PULLING: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
};

/** As pkg/kubelet/kuberuntime, GetContainerLogs. */
const removed = (containerID = ''): string => `unable to retrieve container logs for ${containerID}`;

/** A kubelet refuses no pod for long without ending it; this node says why it waits. */
function causeOf({ status }: Pod): string {
  const causes = [status?.reason, status?.message].filter((text) => text !== undefined && text !== '');
  return ['', ...causes].join(': ');
}

/** As GetExec, GetAttach and GetPortForward of the same file; their errors have status 500. */
export function streamWithoutBody({ kind, home }: Pick<StreamRequest, 'kind' | 'home'>): Refusal {
  const { namespace, pod, container = '' } = home;
  const fullName = `${pod}_${namespace}`;
  const texts = {
    exec: `container not found (${quoted(container)})`,
    attach: `container ${container} not found in pod ${fullName}`,
    portForward: `pod not found (${quoted(fullName)})`,
  };
  return { status: 500, text: texts[kind] };
}
