import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { type Fields, isFields, present } from '../../lib/fields.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { plainText, shownText } from '../../lib/untrusted.ts';
import { podAddressFamily } from '../pod-address.ts';
import type { AnyContainer } from './references.ts';
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
  const { spec, status: shown } = home;
  const { resources, allocatedResources, ...others } = unknown;
  return defined({
    ...(bounded(others) as Fields),
    ...claimedResources({ resources, allocatedResources }, spec, shown),
    phase: phase === undefined ? undefined : known(PHASES, phase),
    reason: word(reason),
    message: text(message),
    conditions: conditions === undefined ? undefined : claimedConditions(conditions),
    startTime: timestamp(startTime),
    hostIP: typeof hostIP === 'string' ? hostIP : undefined,
    podIPs: claimedAddresses(podIPs, podIP),
    observedGeneration: count(observedGeneration),
    containerStatuses: containers(containerStatuses, spec?.containers, shown?.containerStatuses),
    initContainerStatuses: containers(
      initContainerStatuses,
      spec?.initContainers,
      shown?.initContainerStatuses,
    ),
    ephemeralContainerStatuses: containers(
      ephemeralContainerStatuses,
      spec?.ephemeralContainers,
      shown?.ephemeralContainerStatuses,
    ),
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

function containers(
  value: unknown,
  ours: readonly AnyContainer[] | undefined,
  shown: readonly ContainerStatus[] | undefined,
): ContainerStatus[] | undefined {
  if (value === undefined || value === null) return undefined;
  const seen = new Set<string>();
  return items(value).flatMap((item): ContainerStatus[] => {
    const status = fields(item);
    const { name, image, imageID, containerID, ready, started, restartCount, state, lastState, ...unknown } =
      status;
    const { resources, allocatedResources, ...others } = unknown;
    const home = ours?.find((one) => one.name === name);
    if (typeof name !== 'string' || home === undefined || seen.has(name)) return [];
    seen.add(name);
    return [
      defined({
        ...(bounded(others) as Fields),
        ...claimedResources(
          { resources, allocatedResources },
          home,
          shown?.find((one) => one.name === name),
        ),
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

type Resources = AnyContainer['resources'];

/**
 * Of a container or of a pod. Quotas and schedulers at home count the larger one of what is asked for and what is reported here. So no
 * more is shown than home asks for, or than it has shown before, as while a pod is made smaller; and nothing of what only the
 * provider's defaults have set, which is not the pod's.
 */
function claimedResources(
  claimed: Pick<Fields, 'resources' | 'allocatedResources'>,
  asked: { resources?: Resources } | undefined,
  shown: { resources?: Resources; allocatedResources?: Amounts } | undefined,
): Fields {
  const { requests, limits } = asked?.resources ?? {};
  const before = shown?.resources;
  // An API server gives a container that has a limit and no request a request of that amount.
  const wanted = [{ ...limits, ...requests }, before?.requests, shown?.allocatedResources];
  const { requests: theirs, limits: bounds, ...others } = fields(claimed.resources);
  return defined({
    allocatedResources: within(claimed.allocatedResources, wanted),
    resources:
      claimed.resources === undefined
        ? undefined
        : defined({
            ...(bounded(others) as Fields),
            requests: within(theirs, wanted),
            limits: within(bounds, [limits, before?.limits]),
          }),
  });
}

type Amounts = Readonly<Record<string, string>>;

/** Amounts of resources that the first of the lists names, each at most as large as the largest of all lists. */
function within(claimed: unknown, most: readonly (Amounts | undefined)[]): Fields | undefined {
  const [asked = {}] = most;
  const kept = Object.entries(asked).flatMap(([name, amount]): [string, string][] => {
    const said = fields(claimed)[name];
    if (typeof said !== 'string') return [];
    if (said === amount) return [[name, said]];
    const value = milliOf(said);
    if (value === undefined) return [];
    const isSmall = most.some((list) => value <= (milliOf(list?.[name] ?? '') ?? -1n));
    return [[name, isSmall ? said : amount]];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function milliOf(quantity: string): bigint | undefined {
  try {
    return parseMilli(quantity);
  } catch {
    return undefined;
  }
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
