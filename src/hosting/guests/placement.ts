import type { JsonPatchOperation } from '../../api/admission.ts';
import { NEVER_TOLERATED, NODE_LIFE_TAINTS } from '../../api/taints.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import type { Pod, PodAffinityTerm, Toleration } from '../../api/wire.ts';
import { TributaryError } from '../../lib/errors.ts';
import {
  ANNOTATION_EXTENDED,
  ANNOTATION_IMAGE_PULL_POLICY,
  ANNOTATION_NODE_SELECTOR,
  ANNOTATION_OWN_TOLERATIONS,
  ANNOTATION_RUNTIME_CLASS,
  ANNOTATION_TOLERATIONS,
} from '../annotations.ts';

/** What every pod of a tenant namespace gets. */
interface Placement {
  runtimeClassName?: string;
  nodeSelector: ReadonlyMap<string, string>;
  tolerations: readonly Toleration[];
  /** Keys of taints that pods may tolerate of their own accord; `*` for most. */
  ownTolerations: ReadonlySet<string>;
  /** Whether nodes pull each image anew, with the pod's own credentials. */
  pullsAlways: boolean;
}

const MAX_TOLERATIONS = 64;
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/u;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/u;

/**
 * What the annotations of a tenant namespace say. Throws Invalid for one that cannot be read: it says something, and no pod may
 * come in without it.
 */
export function placementOf(annotations: Readonly<Record<string, string>>): Placement {
  const runtimeClassName = annotations[ANNOTATION_RUNTIME_CLASS] ?? '';
  if (runtimeClassName !== '' && !NAME.test(runtimeClassName)) {
    throw malformed(ANNOTATION_RUNTIME_CLASS, 'the name of a RuntimeClass');
  }
  return {
    ...(runtimeClassName !== '' && { runtimeClassName }),
    nodeSelector: parseSelector(annotations[ANNOTATION_NODE_SELECTOR] ?? ''),
    tolerations: parseTolerations(annotations[ANNOTATION_TOLERATIONS]),
    // An API server may tolerate taints that bear the name of an extended resource, for pods that ask for it.
    ownTolerations: new Set([
      ...partsOf(annotations[ANNOTATION_OWN_TOLERATIONS]),
      ...partsOf(annotations[ANNOTATION_EXTENDED]),
    ]),
    pullsAlways: annotations[ANNOTATION_IMAGE_PULL_POLICY] === 'Always',
  };
}

/** The patch that gives a pod of that peer this placement. Empty for a pod that has it already. */
export function placementPatch(pod: Pod, placement: Placement, peer: string): JsonPatchOperation[] {
  return [
    ...affinityPatch(pod, peer),
    ...runtimePatch(pod, placement),
    ...selectorPatch(pod, placement),
    ...tolerationPatch(pod, placement),
    ...imagePatch(pod, placement),
  ];
}

/** The patch for the containers that are put into a pod now. Those that were there before cannot change. */
export function debugPatch(
  { spec }: Pod,
  before: Pod | undefined,
  { pullsAlways }: Placement,
): JsonPatchOperation[] {
  const known = new Set((before?.spec?.ephemeralContainers ?? []).map(({ name }) => name));
  const isNew = ({ name }: { name: string }): boolean => !known.has(name);
  return pullsAlways ? pullPatch('ephemeralContainers', spec?.ephemeralContainers, isNew) : [];
}

/** The patch for a pod to which tolerations are added now: without those that nobody here allows, and with all that it had. */
export function changePatch(
  { spec }: Pod,
  before: Pod | undefined,
  placement: Placement,
): JsonPatchOperation[] {
  const now = spec?.tolerations ?? [];
  const given = [...placement.tolerations, ...(before?.spec?.tolerations ?? [])];
  const kept = allowed(now, placement, given);
  return kept.length === now.length ? [] : [{ op: 'add', path: '/spec/tolerations', value: kept }];
}

/** `Always`, whatever the pod says: else it could run what somebody else has pulled onto the node. */
function imagePatch({ spec }: Pod, { pullsAlways }: Placement): JsonPatchOperation[] {
  if (!pullsAlways) return [];
  const volumes = (spec?.volumes ?? []).flatMap(({ image }, index) =>
    (image ?? undefined) === undefined || image?.pullPolicy === 'Always'
      ? []
      : [alwaysAt(`/spec/volumes/${index}/image/pullPolicy`)],
  );
  return [
    ...pullPatch('containers', spec?.containers),
    ...pullPatch('initContainers', spec?.initContainers),
    ...volumes,
  ];
}

interface Pulling {
  name: string;
  imagePullPolicy?: string;
}

const pullPatch = (
  list: string,
  containers: readonly Pulling[] | undefined,
  isMeant: (container: Pulling) => boolean = () => true,
): JsonPatchOperation[] =>
  (containers ?? []).flatMap((container, index) =>
    container.imagePullPolicy === 'Always' || !isMeant(container)
      ? []
      : [alwaysAt(`/spec/${list}/${index}/imagePullPolicy`)],
  );

const alwaysAt = (path: string): JsonPatchOperation => ({ op: 'add', path, value: 'Always' });

/** Namespaces that are selected are those of the peer: what others have must neither draw its pods nor be kept off by them. */
function affinityPatch({ spec }: Pod, peer: string): JsonPatchOperation[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const { requiredDuringSchedulingIgnoredDuringExecution: required, ...more } =
      spec?.affinity?.[kind] ?? {};
    const preferred = more.preferredDuringSchedulingIgnoredDuringExecution;
    const at = `/spec/affinity/${kind}`;
    return [
      ...(required ?? []).flatMap((term, index) =>
        ofPeer(`${at}/requiredDuringSchedulingIgnoredDuringExecution/${index}`, term, peer),
      ),
      ...(preferred ?? []).flatMap(({ podAffinityTerm }, index) =>
        ofPeer(
          `${at}/preferredDuringSchedulingIgnoredDuringExecution/${index}/podAffinityTerm`,
          podAffinityTerm,
          peer,
        ),
      ),
    ];
  });
}

function ofPeer(path: string, { namespaceSelector }: PodAffinityTerm, peer: string): JsonPatchOperation[] {
  const selector = namespaceSelector ?? undefined;
  if (selector === undefined || selector.matchLabels?.[LABEL_PEER] === peer) return [];
  const value = { ...selector, matchLabels: { ...selector.matchLabels, [LABEL_PEER]: peer } };
  return [{ op: 'add', path: `${path}/namespaceSelector`, value }];
}

function runtimePatch({ spec }: Pod, { runtimeClassName }: Placement): JsonPatchOperation[] {
  if (runtimeClassName === undefined || spec?.runtimeClassName === runtimeClassName) return [];
  return [
    { op: 'add', path: '/spec/runtimeClassName', value: runtimeClassName },
    // It belongs to the class that the pod named. Admission runs again and adds the overhead of our class (KEP-688).
    ...((spec?.overhead ?? null) === null
      ? []
      : [{ op: 'add', path: '/spec/overhead', value: null } as const]),
  ];
}

function selectorPatch({ spec }: Pod, { nodeSelector }: Placement): JsonPatchOperation[] {
  if (nodeSelector.size === 0) return [];
  const own = spec?.nodeSelector ?? undefined;
  if (own === undefined) {
    return [{ op: 'add', path: '/spec/nodeSelector', value: Object.fromEntries(nodeSelector) }];
  }
  return [...nodeSelector]
    .filter(([key, value]) => !Object.hasOwn(own, key) || own[key] !== value)
    .map(([key, value]) => ({ op: 'add', path: `/spec/nodeSelector/${escaped(key)}`, value }));
}

/** Takes off what nobody here allows. A pod without it waits, or runs elsewhere; a refusal would keep it from running at all. */
function tolerationPatch({ spec }: Pod, placement: Placement): JsonPatchOperation[] {
  const own = spec?.tolerations ?? [];
  const kept = allowed(own, placement, placement.tolerations);
  const known = new Set(kept.map(canonical));
  const missing = placement.tolerations.filter((toleration) => !known.has(canonical(toleration)));
  if (kept.length === own.length && missing.length === 0) return [];
  return [{ op: 'add', path: '/spec/tolerations', value: [...kept, ...missing] }];
}

/** Those of them that are given anyway, and those that a pod may have of its own accord. */
function allowed(
  own: readonly Toleration[],
  placement: Placement,
  given: readonly Toleration[],
): Toleration[] {
  const known = new Set(given.map(canonical));
  return own.filter((toleration) => known.has(canonical(toleration)) || isAllowed(toleration, placement));
}

function isAllowed({ key = '', effect }: Toleration, { ownTolerations }: Placement): boolean {
  if (key === '') return false;
  if (NODE_LIFE_TAINTS.includes(key) && effect === 'NoExecute') return true;
  if (NEVER_TOLERATED.some((prefix) => key.startsWith(prefix))) return false;
  return ownTolerations.has(key) || ownTolerations.has('*');
}

const partsOf = (text = ''): string[] => text.split(',').filter((part) => part !== '');

/** For the name of a member in a JSON Pointer (RFC 6901, section 3). */
const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** Equal for tolerations that mean the same. */
const canonical = ({ key, operator, value, effect, tolerationSeconds }: Toleration): string =>
  JSON.stringify([key ?? '', operator || 'Equal', value ?? '', effect ?? '', tolerationSeconds ?? null]);

function parseSelector(text: string): Map<string, string> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return new Map(
    pairs.map((pair) => {
      const [key = '', value, ...rest] = pair.split('=').map((part) => part.trim());
      if (value === undefined || rest.length > 0 || !LABEL_KEY.test(key) || !LABEL_VALUE.test(value)) {
        throw malformed(ANNOTATION_NODE_SELECTOR, 'a list of key=value, joined by commas');
      }
      return [key, value];
    }),
  );
}

function parseTolerations(text: string | undefined): Toleration[] {
  if (text === undefined || text.trim() === '') return [];
  const list = parseJson(text);
  if (!Array.isArray(list) || list.length > MAX_TOLERATIONS || !list.every(isToleration)) {
    throw malformed(ANNOTATION_TOLERATIONS, 'a JSON list of tolerations as in a pod');
  }
  return [...new Map(list.map((one) => [canonical(one), one])).values()];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const TEXTS = new Set(['key', 'operator', 'value', 'effect']);

/** Checks the shape only; the API server finds out whether the values make sense. */
const isToleration = (one: unknown): one is Toleration =>
  typeof one === 'object' &&
  one !== null &&
  !Array.isArray(one) &&
  Object.entries(one).every(([name, value]) =>
    name === 'tolerationSeconds' ? Number.isSafeInteger(value) : TEXTS.has(name) && typeof value === 'string',
  );

const malformed = (annotation: string, wanted: string): TributaryError =>
  new TributaryError('Invalid', `annotation ${annotation} of the tenant namespace is not ${wanted}`);
