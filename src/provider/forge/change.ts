import { ownTolerations } from '../../api/node-life.ts';
import { ANNOTATION_APPLIED } from '../../api/names.ts';
import type { Container, EphemeralContainer, Pod } from '../../api/wire.ts';
import { instead } from './additions.ts';
import {
  type Applied,
  appliedOf,
  CHANGED_RESOURCES,
  changedEphemeral,
  generationOf,
  isApplied,
  isForRoom,
  readApplied,
  travellingAnnotations,
  travellingLabels,
} from './applied.ts';
import type { ForgeContext } from './context.ts';
import { forgeContainer, forgeTolerations } from './pod.ts';
import { droppedVolumes } from './volumes.ts';

const METADATA_AND_SPEC = 'metadata and spec';

/** One write that brings the remote pod closer to the home pod. */
export interface PodChange {
  /** Undefined: the pod itself; else the native subresource for what may only change there. */
  subresource: 'ephemeralcontainers' | 'resize' | undefined;
  /** Strategic merge patch. */
  patch: object;
  /** Names the change in events, and among the changes of one generation. */
  what: string;
}

/**
 * The next change to carry across, or undefined when the remote pod has been given everything. Subresources go
 * first; the last patch, on the pod itself, records the home generation, so a crash in between only repeats.
 *
 * @param refused what the foreign cluster has just refused, with the reason: skipped, so that the rest still travels, and
 *   recorded, so that it is asked for once a generation and shown at home; undefined when even the record is refused
 */
export function nextChange(
  home: Pod,
  remote: Pod,
  context: ForgeContext,
  refused: ReadonlyMap<string, string> = new Map(),
): PodChange | undefined {
  const marks = policyMarks(home, remote, context);
  if (marks !== undefined && !refused.has(marks.what)) return marks;
  const given = readApplied(remote);
  const changes: (PodChange | undefined)[] =
    given?.generation === generationOf(home)
      ? [deferredResources(home, remote, given)]
      : [...ephemeralContainers(home, remote, context), resources(home, remote)];
  if (isApplied(home, given))
    return changes.find((change) => change !== undefined && !refused.has(change.what));
  const next = changes.find((change) => change !== undefined && !refused.has(change.what));
  const last = [next, metadataAndSpec(home, remote, context, refused), record(home, remote, refused)];
  return last.find((change) => change !== undefined && !refused.has(change.what));
}

/** NetworkPolicies that came, went or select other pods since. */
function policyMarks(home: Pod, remote: Pod, context: ForgeContext): PodChange | undefined {
  const labels = Object.fromEntries(
    Object.entries(context.policyMarks?.(home) ?? {}).filter(
      ([key, value]) => (remote.metadata.labels?.[key] ?? null) !== value,
    ),
  );
  if (Object.keys(labels).length === 0) return undefined;
  return { subresource: undefined, what: 'labels for NetworkPolicies', patch: { metadata: { labels } } };
}

/** Only records that this generation has been dealt with. */
const record = (home: Pod, remote: Pod, refused: ReadonlyMap<string, string>): PodChange => ({
  subresource: undefined,
  what: 'annotations',
  patch: { metadata: { annotations: { [ANNOTATION_APPLIED]: recordOf(home, remote, refused) } } },
});

/**
 * The record to be written beside a change. What was refused of this generation before stays said, since it is not asked for again;
 * and images count as carried across only where the spec was.
 */
function recordOf(home: Pod, remote: Pod, refused: ReadonlyMap<string, string>): string {
  const given = readApplied(remote);
  const isSameGeneration = given?.generation === generationOf(home);
  const before = isSameGeneration ? Object.entries(given.refused ?? {}) : [];
  const isResized = resources(home, remote) === undefined;
  const lasts = ([what]: [string, string]): boolean =>
    what !== METADATA_AND_SPEC && !(what === CHANGED_RESOURCES && isResized);
  const all = new Map([...before.filter(lasts), ...refused]);
  const applied = appliedOf(home, all);
  const isSpecCarried = !isSameGeneration && !refused.has(METADATA_AND_SPEC);
  return JSON.stringify(isSpecCarried ? applied : { ...applied, images: given?.images ?? {} });
}

/**
 * Append only (KEP-277): containers that the remote pod does not have yet, each by itself, since one that the
 * foreign cluster refuses must not keep the others away.
 */
function ephemeralContainers(home: Pod, remote: Pod, context: ForgeContext): PodChange[] {
  const there = new Set((remote.spec?.ephemeralContainers ?? []).map(({ name }) => name));
  const dropped = droppedVolumes(home, context);
  return (home.spec?.ephemeralContainers ?? [])
    .filter(({ name }) => !there.has(name))
    .map((container) => {
      const forged: EphemeralContainer = forgeContainer(container, dropped, home, context);
      return {
        subresource: 'ephemeralcontainers',
        patch: { spec: { ephemeralContainers: [forged] } },
        what: changedEphemeral(container.name),
      };
    });
}

/**
 * In-place resize (KEP-1287, and KEP-5419 of a pod as a whole): what of the resources differs from what the remote pod is asked to have.
 */
function resources(home: Pod, remote: Pod): PodChange | undefined {
  const changed = (
    ours: readonly Container[] | undefined,
    theirs: readonly Container[] | undefined,
  ): object[] =>
    (ours ?? []).flatMap(({ name, resources: want }) => {
      const have = theirs?.find((container) => container.name === name)?.resources;
      return want === undefined || covers(have, want)
        ? []
        : [{ name, resources: { requests: want.requests, limits: want.limits } }];
    });
  const containers = changed(home.spec?.containers, remote.spec?.containers);
  const initContainers = changed(home.spec?.initContainers, remote.spec?.initContainers);
  const { resources: ofPod } = home.spec ?? {};
  const isPodChanged = ofPod !== undefined && !covers(remote.spec?.resources, ofPod);
  if (containers.length + initContainers.length === 0 && !isPodChanged) return undefined;
  const spec = {
    ...(isPodChanged && { resources: { requests: ofPod.requests, limits: ofPod.limits } }),
    ...(containers.length > 0 ? { containers } : {}),
    ...(initContainers.length > 0 ? { initContainers } : {}),
  };
  return { subresource: 'resize', patch: { spec }, what: CHANGED_RESOURCES };
}

/** A resize that was refused for room is asked for again, as a kubelet does that has deferred it; what does it no more is recorded. */
function deferredResources(home: Pod, remote: Pod, given: Applied): PodChange | undefined {
  const why = given.refused?.[CHANGED_RESOURCES];
  if (why === undefined || !isForRoom(why)) return undefined;
  return resources(home, remote) ?? record(home, remote, new Map());
}

type Resources = NonNullable<Container['resources']>;

/** Whether the remote has every amount that home asks for; defaults that the foreign cluster added do not count. */
function covers(have: Resources | undefined, want: Resources): boolean {
  return (['requests', 'limits'] as const).every((section) =>
    Object.entries(want[section] ?? {}).every(([name, amount]) => have?.[section]?.[name] === amount),
  );
}

/** Labels, annotations and the few spec fields that a running pod may change (core/v1 ValidatePodUpdate). */
function metadataAndSpec(
  home: Pod,
  remote: Pod,
  { podAdditions: added = {} }: ForgeContext,
  refused: ReadonlyMap<string, string>,
): PodChange {
  const given = readApplied(remote);
  const labels = travellingLabels(home);
  const annotations = travellingAnnotations(home);
  const gone = (keys: readonly string[] | undefined, now: Record<string, string>): string[] =>
    (keys ?? []).filter((key) => !(key in now));
  const spec = changedSpec(home, remote);
  return {
    subresource: undefined,
    what: METADATA_AND_SPEC,
    patch: {
      metadata: {
        labels: { ...instead(gone(given?.labels, labels), added.labels), ...labels },
        annotations: {
          ...instead(gone(given?.annotations, annotations), added.annotations),
          ...annotations,
          [ANNOTATION_APPLIED]: recordOf(home, remote, refused),
        },
      },
      ...(Object.keys(spec).length > 0 ? { spec } : {}),
    },
  };
}

function changedSpec(home: Pod, remote: Pod): Record<string, unknown> {
  const given = readApplied(remote);
  // A metadata-only change leaves the spec alone, whatever the foreign cluster's admission has made of it.
  if (given?.generation === generationOf(home)) return {};
  const images = (ours: readonly Container[] | undefined): object[] =>
    (ours ?? [])
      .filter(({ name, image }) => given?.images[name] !== image)
      .map(({ name, image }) => ({ name, image }));
  return withoutEmpty({
    containers: images(home.spec?.containers),
    initContainers: images(home.spec?.initContainers),
    tolerations: addedTolerations(home, remote),
    activeDeadlineSeconds: changedNumber(home, remote, 'activeDeadlineSeconds'),
    terminationGracePeriodSeconds: changedNumber(home, remote, 'terminationGracePeriodSeconds'),
  });
}

function changedNumber(
  home: Pod,
  remote: Pod,
  field: 'activeDeadlineSeconds' | 'terminationGracePeriodSeconds',
): number | undefined {
  const wanted = home.spec?.[field];
  return wanted === remote.spec?.[field] ? undefined : wanted;
}

function withoutEmpty(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).filter(
      ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
    ),
  );
}

/** Tolerations can only be added to a pod, and the patch replaces the whole list: the remote pod's own come first. */
function addedTolerations(home: Pod, remote: Pod): object[] | undefined {
  const there = remote.spec?.tolerations ?? [];
  const known = new Set(there.map((toleration) => JSON.stringify(canonical(toleration))));
  const added = forgeTolerations(ownTolerations(home)).filter(
    (toleration) => !known.has(JSON.stringify(canonical(toleration))),
  );
  return added.length === 0 ? undefined : [...there, ...added];
}

const canonical = (value: object): [string, unknown][] =>
  Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
