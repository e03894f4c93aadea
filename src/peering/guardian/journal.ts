/**
 * The journal of one tenant namespace as it is stored: gzip of JSON in Secrets, each with a share of the pods. What is read
 * is checked, and never unpacked beyond a bound: a peer's pods are in it. Pure, but for the compression.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import type { Draft, KubeObject, PodSpec, Secret } from '../../api/wire.ts';
import { TributaryError, errorMessage } from '../../lib/errors.ts';
import { LABEL_PEER } from '../labels.ts';
import { PEERS_NAMESPACE } from '../tenant.ts';
import { integerAt, listAt, mapAt, objectAt, own, textAt } from '../untrusted.ts';
import type { Entry } from './entry.ts';

/** Selects journals; the value is the tenant namespace. */
export const LABEL_JOURNAL = 'tributary.dev/journal';
export const JOURNAL_TYPE = 'tributary.dev/journal';
const KEY = 'journal';
const FORM = 1;

/** An API server takes objects of up to 1.5 MiB, as base64 and with what surrounds it. */
const MAX_BYTES = 700 * 1024;
/** What a Secret holds in the beginning: results and restarts are still to come. */
const FILL_BYTES = 250 * 1024;
const MAX_UNPACKED = 64 * 1024 * 1024;
const MAX_SHARDS = 64;
const MAX_ENTRIES = 20_000;
const MAX_NAMES = 2000;
const MAX_TEXT = 1024 * 1024;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** What all Secrets of one journal say. */
export interface JournalHead {
  namespace: string;
  namespaceUid: string;
  peer: string;
  /** Since when the home is away, RFC 3339. The wall clock is believed in this only: it must survive us. */
  since: string;
  shards: number;
  /** What the home's Leases showed then, by namespace; journals of earlier releases do not say. */
  marks?: Record<string, string>;
}

export interface Shard extends JournalHead {
  shard: number;
  entries: Entry[];
}

export const journalName = (namespace: string, shard: number): string =>
  `tributary-journal-${namespace}-${shard}`;

/** By the UID of the home pod, so that a pod stays where it is. */
export const shardOf = (homeUid: string, shards: number): number =>
  createHash('sha256').update(homeUid).digest().readUInt32BE(0) % shards;

/** How many Secrets it takes; fixed when a journal begins. */
export async function shardsFor(entries: readonly Entry[]): Promise<number> {
  const { length } = await pack(JSON.stringify(entries));
  return Math.min(MAX_SHARDS, Math.max(1, Math.ceil(length / FILL_BYTES)));
}

/** Throws Invalid where it would not fit. */
export async function shardSecret(shard: Shard): Promise<Draft<Secret>> {
  const { namespace, namespaceUid, peer, since, shards, marks, entries } = shard;
  const text = JSON.stringify({ form: FORM, since, shards, marks, shard: shard.shard, entries });
  const packed = await pack(text);
  const name = journalName(namespace, shard.shard);
  if (packed.length > MAX_BYTES) {
    throw new TributaryError(
      'Invalid',
      `journal ${name} would have ${packed.length} bytes, at most ${MAX_BYTES} are allowed; ` +
        'what becomes of its pods while their home is away is not written down any more',
    );
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: PEERS_NAMESPACE,
      name,
      labels: { [LABEL_APP_NAME]: APP_NAME, [LABEL_PEER]: peer, [LABEL_JOURNAL]: namespace },
      // It goes with the tenant, also when nobody of us is there.
      ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: namespace, uid: namespaceUid }],
    },
    type: JOURNAL_TYPE,
    data: { [KEY]: packed.toString('base64') },
  };
}

/** Throws Invalid, without a word of what is in it. */
export async function readShard({ metadata, data }: Secret): Promise<Shard> {
  const { labels = {}, ownerReferences = [], name } = metadata;
  try {
    const packed = Buffer.from(data?.[KEY] ?? '', 'base64');
    const text = (await unpack(packed, { maxOutputLength: MAX_UNPACKED })).toString('utf8');
    const json = objectAt('journal', JSON.parse(text));
    integerAt('form', own(json, 'form'), { least: FORM, most: FORM });
    const shards = integerAt('shards', own(json, 'shards'), { least: 1, most: MAX_SHARDS });
    const marks = own(json, 'marks');
    return {
      namespace: labels[LABEL_JOURNAL] ?? '',
      namespaceUid: ownerReferences[0]?.uid ?? '',
      peer: labels[LABEL_PEER] ?? '',
      since: timeAt('since', own(json, 'since')),
      shards,
      ...(marks !== undefined && { marks: marksAt(marks) }),
      shard: integerAt('shard', own(json, 'shard'), { least: 0, most: shards - 1 }),
      entries: listAt('entries', own(json, 'entries'), { most: MAX_ENTRIES, item: entryAt }),
    };
  } catch (error) {
    const why = error instanceof SyntaxError ? 'not JSON' : errorMessage(error);
    throw new TributaryError('Invalid', `Secret ${name} does not hold a journal (${why})`);
  }
}

function entryAt(field: string, value: unknown): Entry {
  const entry = objectAt(field, value);
  const text = (key: string): string => textAt(`${field}.${key}`, own(entry, key), MAX_TEXT);
  const texts = (key: string): Record<string, string> =>
    mapAt(`${field}.${key}`, own(entry, key), {
      most: MAX_NAMES,
      entry: (at, _key, item) => textAt(at, item, MAX_TEXT),
    });
  const spec = objectAt(`${field}.spec`, own(entry, 'spec'));
  // The API server judges the rest when a pod is made of it.
  listAt(`${field}.spec.containers`, own(spec, 'containers'), { most: MAX_NAMES, item: objectAt });
  const result = own(entry, 'result');
  return {
    name: text('name'),
    homeUid: text('homeUid'),
    uid: text('uid'),
    created: timeAt(`${field}.created`, own(entry, 'created')),
    labels: texts('labels'),
    annotations: texts('annotations'),
    spec: spec as unknown as PodSpec,
    restarts: mapAt(`${field}.restarts`, own(entry, 'restarts'), {
      most: MAX_NAMES,
      entry: (at, _key, item) => integerAt(at, item, { least: 0, most: 2 ** 31 }),
    }),
    ...(result !== undefined && { result: objectAt(`${field}.result`, result) }),
    ...(own(entry, 'leaving') === true && { leaving: true as const }),
  };
}

const marksAt = (value: unknown): Record<string, string> =>
  mapAt('marks', value, { most: MAX_ENTRIES, entry: (at, _key, item) => textAt(at, item, MAX_TEXT) });

function timeAt(field: string, value: unknown): string {
  const text = textAt(field, value, 64);
  if (Number.isNaN(Date.parse(text))) throw new TributaryError('Invalid', `${field} is not a time`);
  return text;
}

/** Whether its home has renewed no Lease since: else it was there, and what went meanwhile it has seen, or removed itself. */
export const isOfAbsence = ({ marks }: JournalHead, now: Readonly<Record<string, string>>): boolean =>
  marks === undefined ||
  Object.entries(now).every(
    ([namespace, mark]) => Object.hasOwn(marks, namespace) && marks[namespace] === mark,
  );

/** Of the tenant namespace that is there today, not of an earlier one of its name. */
export const isOf = ({ namespaceUid }: JournalHead, { metadata }: KubeObject): boolean =>
  namespaceUid === metadata.uid;
