import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import { shownText } from '../../lib/untrusted.ts';

/**
 * How large a status may be in sum. Home's etcd keeps each version of a pod for minutes, and the fields of a status are bounded
 * one by one only, so a provider could make a megabyte of them.
 */

const KIB = 1024;
/** Several times what a kubelet writes. */
const LEAST_BYTES = 32 * KIB;
/** A pod has as many as home has said. */
const CONTAINER_BYTES = 2 * KIB;
const SHORT_TEXT = 256;
const MOST_CONDITIONS = 16;

export interface Sized {
  status: PodStatus;
  /** Something was left out or shortened, since it was too large in sum. */
  isCut: boolean;
}

export function mostStatusBytes({ spec }: Pod): number {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  return (
    LEAST_BYTES + CONTAINER_BYTES * (containers.length + initContainers.length + ephemeralContainers.length)
  );
}

export const statusBytes = (status: PodStatus): number => Buffer.byteLength(JSON.stringify(status));

/** The status, with less and less of what a pod can do without until it is small enough. Pure. */
export function sizedStatus(home: Pod, status: PodStatus): Sized {
  const most = mostStatusBytes(home);
  let sized = status;
  for (const step of [plainFields, shortTexts, barest]) {
    if (statusBytes(sized) <= most) return { status: sized, isCut: sized !== status };
    sized = step(sized);
  }
  return { status: sized, isCut: true };
}

/** Only fields that this program knows. */
function plainFields(status: PodStatus): PodStatus {
  const { phase, reason, message, startTime, hostIP, podIPs, observedGeneration } = status;
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status;
  const conditions = status.conditions?.slice(0, MOST_CONDITIONS);
  const pod = { phase, reason, message, startTime, hostIP, podIPs, observedGeneration, conditions };
  const lists = { containerStatuses, initContainerStatuses, ephemeralContainerStatuses };
  return eachContainer(present({ ...pod, ...lists }), (one) => {
    const { name, image, imageID, containerID, ready, started, restartCount, state, lastState } = one;
    // A resize is seen by it.
    const resources = JSON.stringify(one.resources ?? {}).length <= KIB ? one.resources : undefined;
    const container = { name, image, imageID, containerID, ready, started, restartCount, state, lastState };
    return present({ ...container, resources }) as ContainerStatus;
  });
}

function shortTexts(status: PodStatus): PodStatus {
  const conditions = status.conditions?.map((one) => shortened(one) as PodCondition);
  const short = { ...status, ...present({ conditions, message: status.message && cut(status.message) }) };
  return eachContainer(short, (one) => shortened(one) as ContainerStatus);
}

/** What a controller at home counts on: is it ready, has it ended, and how. */
const barest = (status: PodStatus): PodStatus =>
  eachContainer(status, ({ name, ready, started, restartCount, state }) => {
    return present({ name, image: '', imageID: '', ready, started, restartCount, state }) as ContainerStatus;
  });

const LISTS = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;

function eachContainer(status: PodStatus, change: (one: ContainerStatus) => ContainerStatus): PodStatus {
  const changed = { ...status };
  for (const list of LISTS) if (status[list] !== undefined) changed[list] = status[list].map(change);
  return changed;
}

const cut = (text: string): string => shownText(text, SHORT_TEXT);

/** By these, things are told apart. */
const NAMES: ReadonlySet<string> = new Set(['name', 'type']);

function shortened(value: unknown): unknown {
  if (typeof value === 'string') return cut(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(shortened);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, NAMES.has(key) ? item : shortened(item)]),
  );
}
