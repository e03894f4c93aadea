import { hash } from 'node:crypto';
import { ANNOTATION_APPLIED, isOwnKey } from '../../api/names.ts';
import { isSteering } from '../../api/steering.ts';
import type { Pod } from '../../api/wire.ts';
import { ofLast } from '../../lib/of-last.ts';
import { shownText } from '../../lib/untrusted.ts';

/**
 * What of the home pod was last carried across. Kept on the remote pod itself, so that it survives a restart. It is compared
 * instead of the live values, so that the foreign cluster's admission may change what it likes and we do not change it back.
 */
export interface Applied {
  /** `metadata.generation` of the home pod whose spec was carried across. */
  generation: number;
  /** Images by container, init containers included, as home asked for them. */
  images: Record<string, string>;
  /** Keys of labels and annotations that came from home: the ones we may remove again. */
  labels: string[];
  annotations: string[];
  /** Digest over the labels and annotations that came from home. */
  digest: string;
  /** What of that generation the foreign cluster refused, with its reason, so that home can show it. */
  refused?: Record<string, string>;
}

/** As `PodChange.what` names them. */
export const CHANGED_RESOURCES = 'resources';
export const changedEphemeral = (container: string): string => `ephemeral container "${container}"`;

/**
 * Whether that refusal passes when other pods end. Kubernetes tells quota apart by text alone (plugin/pkg/admission/resourcequota).
 */
export const isForRoom = (message: string): boolean => /exceeded quota/u.test(message);

const MAX_REASON = 1024;

/** Annotations that say something about an object at home only. */
const HOME_ONLY_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

export const travels = (key: string): boolean => !isOwnKey(key) && !isSteering(key);

export function travellingLabels(home: Pod): Record<string, string> {
  return Object.fromEntries(Object.entries(home.metadata.labels ?? {}).filter(([key]) => travels(key)));
}

export function travellingAnnotations(home: Pod): Record<string, string> {
  return Object.fromEntries(
    Object.entries(home.metadata.annotations ?? {}).filter(([key]) => isTravellingAnnotation(key)),
  );
}

const isTravellingAnnotation = (key: string): boolean => travels(key) && !HOME_ONLY_ANNOTATIONS.has(key);

type Marks = Pick<Applied, 'labels' | 'annotations' | 'digest'>;

/** Pods of one controller hold equal labels and annotations in common, so that one after the other asks for the same. */
const marksOf = ofLast(
  (labels: Pod['metadata']['labels'] = {}, annotations: Pod['metadata']['annotations'] = {}): Marks => {
    const ofLabels = Object.keys(labels).filter(travels).toSorted();
    const ofAnnotations = Object.keys(annotations).filter(isTravellingAnnotation).toSorted();
    const text = JSON.stringify([
      ofLabels.map((key) => [key, labels[key]]),
      ofAnnotations.map((key) => [key, annotations[key]]),
    ]);
    return { labels: ofLabels, annotations: ofAnnotations, digest: hash('sha256', text).slice(0, 16) };
  },
);

/** That whose spec is carried across. */
export const generationOf = ({ metadata }: Pod): number => metadata.generation ?? 1;

/** Whether all of the home pod was carried across, as far as the record says. */
export function isApplied(home: Pod, given: Applied | undefined): boolean {
  const { labels, annotations } = home.metadata;
  return given?.generation === generationOf(home) && given.digest === marksOf(labels, annotations).digest;
}

export function appliedOf(home: Pod, refused: ReadonlyMap<string, string> = new Map()): Applied {
  const { labels, annotations, digest } = marksOf(home.metadata.labels, home.metadata.annotations);
  return {
    generation: generationOf(home),
    images: Object.fromEntries(
      [...(home.spec?.initContainers ?? []), ...(home.spec?.containers ?? [])].map(({ name, image }) => [
        name,
        image ?? '',
      ]),
    ),
    labels,
    annotations,
    digest,
    ...(refused.size > 0 && {
      refused: Object.fromEntries([...refused].map(([what, why]) => [what, why.slice(0, MAX_REASON)])),
    }),
  };
}

/** The record on a remote pod; undefined when absent or damaged, which means: carry everything across again. */
export function readApplied(remote: Pod): Applied | undefined {
  const text = remote.metadata.annotations?.[ANNOTATION_APPLIED];
  if (text === undefined) return undefined;
  try {
    const value = JSON.parse(text) as Partial<Applied> | null;
    return value !== null && isRecord(value) ? { ...value, ...shownRefusals(value) } : undefined;
  } catch {
    return undefined;
  }
}

/** The provider may have changed them. */
function shownRefusals({ refused }: Applied): Pick<Applied, 'refused'> {
  if (refused === undefined) return {};
  const entries = Object.entries(refused).map(([what, why]) => [what, shownText(why, MAX_REASON)] as const);
  return { refused: Object.fromEntries(entries) };
}

function isRecord(value: Partial<Applied>): value is Applied {
  const isStrings = (list: unknown): boolean =>
    Array.isArray(list) && list.every((item) => typeof item === 'string');
  return (
    typeof value.generation === 'number' &&
    typeof value.digest === 'string' &&
    typeof value.images === 'object' &&
    value.images !== null &&
    isStrings(value.labels) &&
    isStrings(value.annotations) &&
    (value.refused === undefined ||
      (typeof value.refused === 'object' &&
        value.refused !== null &&
        isStrings(Object.values(value.refused))))
  );
}
