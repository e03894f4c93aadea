import type { JsonPatchOperation } from '../../api/admission.ts';
import type { Pod, Toleration } from '../../api/wire.ts';
import { TributaryError } from '../../lib/errors.ts';
import {
  ANNOTATION_NODE_SELECTOR,
  ANNOTATION_RUNTIME_CLASS,
  ANNOTATION_TOLERATIONS,
} from '../annotations.ts';

/** What every pod of a tenant namespace gets. */
interface Placement {
  runtimeClassName?: string;
  nodeSelector: ReadonlyMap<string, string>;
  tolerations: readonly Toleration[];
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
  };
}

/** The patch that gives a pod this placement. Empty for a pod that has it already. */
export function placementPatch(pod: Pod, placement: Placement): JsonPatchOperation[] {
  return [
    ...runtimePatch(pod, placement),
    ...selectorPatch(pod, placement),
    ...tolerationPatch(pod, placement),
  ];
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

function tolerationPatch({ spec }: Pod, { tolerations }: Placement): JsonPatchOperation[] {
  const own = spec?.tolerations ?? undefined;
  const known = new Set((own ?? []).map(canonical));
  const missing = tolerations.filter((toleration) => !known.has(canonical(toleration)));
  if (missing.length === 0) return [];
  if (own === undefined) return [{ op: 'add', path: '/spec/tolerations', value: missing }];
  return missing.map((value) => ({ op: 'add', path: '/spec/tolerations/-', value }));
}

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
