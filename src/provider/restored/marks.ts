import type { Lease } from '../../api/wire.ts';
import { ANNOTATION_RENEWALS } from '../../api/names.ts';

/**
 * A point in the history of a Lease: how often it had been renewed. Versions would not do: a restore may raise them, so that no
 * watch goes wrong (`etcdutl snapshot restore --bump-revision`).
 */
export interface Mark {
  /** The beginning of the Lease's UID: one that was deleted and made anew counts from the start. */
  uid: string;
  count: number;
}

/** What the Lease over there says of a Lease at home. */
export interface Note extends Mark {
  /** Name of the Node and of its Lease. */
  node: string;
}

const UID_LENGTH = 8;
const MARK = /^(?<uid>[0-9a-z-]{1,8})\.(?<count>[0-9]{1,15})$/u;

/** Of a Lease that we alone write, in an annotation. */
export const markOf = ({ metadata }: Lease): Mark => {
  const count = Number(metadata.annotations?.[ANNOTATION_RENEWALS] ?? 0);
  return { uid: metadata.uid.slice(0, UID_LENGTH), count: Number.isSafeInteger(count) ? count : 0 };
};

/** Of the Lease over there: providers let peers change its spec only. */
export const markOfForeign = ({ metadata, spec }: Lease): Mark => ({
  uid: metadata.uid.slice(0, UID_LENGTH),
  count: spec?.leaseTransitions ?? 0,
});

/** Whether the server that shows `found` has lost what was written until `known`. */
export const isLost = (known: Mark | undefined, found: Mark | undefined): boolean =>
  known !== undefined && found !== undefined && known.uid === found.uid && found.count < known.count;

export const markText = ({ uid, count }: Mark): string => `${uid}.${count}`;

export function parseMark(text: string | undefined): Mark | undefined {
  const { uid, count } = MARK.exec(text ?? '')?.groups ?? {};
  return uid === undefined ? undefined : { uid, count: Number(count) };
}

/** The holder of the Lease over there, with what it notes of its Lease at home. */
export const holderText = (node: string, mark: Mark | undefined): string =>
  mark === undefined ? node : `${node} ${markText(mark)}`;

/** Undefined where nothing is noted, as by earlier versions. */
export function parseHolder(text: string | undefined): Note | undefined {
  const [node = '', noted, ...others] = (text ?? '').split(' ');
  const mark = parseMark(noted);
  return mark === undefined || node === '' || others.length > 0 ? undefined : { node, ...mark };
}
