import { DEFAULTED_RESOURCES } from '../../api/default-requests.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { type Fields, isFields, present, withoutKeys } from '../../lib/fields.ts';
import { plainText, shownText } from '../../lib/untrusted.ts';
import { podAddressFamily } from '../pod-address.ts';
import type { AnyContainer } from './references.ts';
import { asks } from './requests.ts';
import { type Sized, sizedStatus } from './status-size.ts';

/**
 * What the foreign cluster says of a pod is untrusted: a peer may answer with anything that is JSON, and the home API
 * server refuses a status as a whole for one bad field (pkg/apis/core/validation ValidatePodStatusUpdate). Here each
 * field that it looks at is brought into a form that it takes, or left out; fields that this program does not know
 * travel along, cut to a size that nobody honest reaches.
 */

/** As a kubelet bounds the last words of a container. */
const MAX_TEXT = 4096;
const MAX_REASON = 256;
const MAX_ITEMS = 64;
const MAX_DEPTH = 10;
const MAX_INT32 = 2 ** 31 - 1;
const QUALIFIED_NAME =
  /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
const PHASES = new Set(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown']);
const CONDITION_STATUSES = new Set(['True', 'False', 'Unknown']);
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/u;

export function claimedStatus(home: Pod, remote: Pod): Sized {
  return sizedStatus(home, claimedFields(home, remote));
}

function claimedFields(home: Pod, remote: Pod): PodStatus {
  const status = fields((remote as { status?: unknown }).status);
  const { phase, reason, message, conditions, startTime, podIP, podIPs, hostIP, ...rest } = status;
  const {
    observedGeneration,
    containerStatuses,
    initContainerStatuses,
    ephemeralContainerStatuses,
    ...unknown
  } = rest;
  const byName = (containers: readonly AnyContainer[] | undefined): Map<string, AnyContainer> =>
    new Map((containers ?? []).map((container) => [container.name, container]));
  const { spec } = home;
  return defined({
    ...(bounded(unknown) as Fields),
    phase: phase === undefined ? undefined : known(PHASES, phase),
    reason: word(reason),
    message: text(message),
    conditions: conditions === undefined ? undefined : claimedConditions(conditions),
    startTime: timestamp(startTime),
    hostIP: typeof hostIP === 'string' ? hostIP : undefined,
    podIPs: claimedAddresses(podIPs, podIP),
    observedGeneration: count(observedGeneration),
    containerStatuses: containers(containerStatuses, byName(spec?.containers)),
    initContainerStatuses: containers(initContainerStatuses, byName(spec?.initContainers)),
    ephemeralContainerStatuses: containers(ephemeralContainerStatuses, byName(spec?.ephemeralContainers)),
  });
}

function claimedConditions(value: unknown): PodCondition[] {
  const seen = new Set<string>();
  return items(value).flatMap((item): PodCondition[] => {
    const { type, status, reason, message, lastProbeTime, lastTransitionTime, ...rest } = fields(item);
    if (typeof type !== 'string' || !QUALIFIED_NAME.test(type) || seen.has(type)) return [];
    seen.add(type);
    const { observedGeneration, ...unknown } = rest;
    return [
      defined({
        ...(bounded(unknown) as Fields),
        type,
        status: known(CONDITION_STATUSES, status),
        reason: word(reason),
        message: text(message),
        lastProbeTime: timestamp(lastProbeTime),
        lastTransitionTime: timestamp(lastTransitionTime),
        observedGeneration: count(observedGeneration),
      }),
    ];
  });
}

/** At most one address of each family, as the API server demands. */
function claimedAddresses(podIPs: unknown, podIP: unknown): { ip: string }[] {
  const listed = items(podIPs).map((item) => fields(item)['ip']);
  const families = new Set<number>();
  return (listed.length > 0 ? listed : [podIP]).flatMap((ip) => {
    const family = typeof ip === 'string' ? podAddressFamily(ip) : 0;
    if (typeof ip !== 'string' || family === 0 || families.has(family)) return [];
    families.add(family);
    return [{ ip }];
  });
}

function containers(value: unknown, known: ReadonlyMap<string, AnyContainer>): ContainerStatus[] | undefined {
  if (value === undefined || value === null) return undefined;
  const seen = new Set<string>();
  return items(value).flatMap((item): ContainerStatus[] => {
    const status = fields(item);
    const { name, image, imageID, containerID, ready, started, restartCount, state, lastState, ...unknown } =
      status;
    const home = typeof name === 'string' ? known.get(name) : undefined;
    if (typeof name !== 'string' || home === undefined || seen.has(name)) return [];
    seen.add(name);
    return [
      defined({
        ...withoutDefaults(bounded(unknown) as Fields, home),
        name,
        image: text(image) ?? '',
        imageID: text(imageID) ?? '',
        containerID: text(containerID),
        ready: ready === true,
        started: typeof started === 'boolean' ? started : undefined,
        restartCount: count(restartCount) ?? 0,
        state: containerState(state),
        lastState: containerState(lastState),
      }),
    ];
  });
}

/** Requests that only the provider's defaults have set are not the pod's, and the scheduler here would count them. */
function withoutDefaults({ resources, allocatedResources, ...rest }: Fields, home: AnyContainer): Fields {
  const unasked = DEFAULTED_RESOURCES.filter((name) => !asks(home, name));
  const kept = (amounts: unknown): Fields | undefined => {
    const asked = withoutKeys(fields(amounts), unasked);
    return Object.keys(asked).length === 0 ? undefined : asked;
  };
  const { requests, ...others } = fields(resources);
  return defined({
    ...rest,
    allocatedResources: kept(allocatedResources),
    resources: resources === undefined ? undefined : defined({ ...others, requests: kept(requests) }),
  });
}

/** Exactly one of the three, or none. */
function containerState(value: unknown): NonNullable<ContainerStatus['state']> {
  const { waiting, running, terminated } = fields(value);
  if (isFields(terminated)) {
    const { exitCode, signal, reason, message, startedAt, finishedAt, containerID } = terminated;
    return {
      terminated: defined({
        exitCode: integer(exitCode) ?? 0,
        signal: integer(signal),
        reason: word(reason),
        message: text(message),
        startedAt: timestamp(startedAt),
        finishedAt: timestamp(finishedAt),
        containerID: text(containerID),
      }),
    };
  }
  if (isFields(running)) return { running: defined({ startedAt: timestamp(running['startedAt']) }) };
  if (!isFields(waiting)) return {};
  return { waiting: defined({ reason: word(waiting['reason']), message: text(waiting['message']) }) };
}

const fields = (value: unknown): Fields => (isFields(value) ? value : {});
const items = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, MAX_ITEMS) : []);

const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? shownText(value, MAX_TEXT) : undefined;

const word = (value: unknown): string | undefined =>
  typeof value === 'string' ? plainText(value, MAX_REASON) : undefined;

const known = (values: ReadonlySet<string>, value: unknown): string =>
  typeof value === 'string' && values.has(value) ? value : 'Unknown';

const integer = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= MAX_INT32 ? value : undefined;

const count = (value: unknown): number | undefined => {
  const number = integer(value);
  return number === undefined || number < 0 ? undefined : number;
};

const timestamp = (value: unknown): string | undefined =>
  typeof value === 'string' && TIMESTAMP.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;

/** A value of unknown shape, with long texts and lists cut, and nothing deeper than any status is. */
function bounded(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return shownText(value, MAX_TEXT);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => bounded(item, depth + 1));
  const kept: Fields = {};
  for (const key of Object.keys(value).slice(0, MAX_ITEMS)) {
    // No field is called so; assigned, it would be the prototype.
    if (key !== '__proto__') kept[key] = bounded((value as Fields)[key], depth + 1);
  }
  return kept;
}

/** Without the fields that are undefined, so that what is absent there is absent here. */
function defined<T extends Fields>(record: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return present(record) as { [K in keyof T]: Exclude<T[K], undefined> };
}
