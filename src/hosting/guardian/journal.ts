/**
 * The journal of one tenant namespace as it is stored: gzip of JSON in Secrets, each with a share of the pods. It contains what a
 * peer has written, so it is checked when read, and never unpacked beyond a bound. Pure, except for the compression.
 */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { LABEL_PEER, PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { Draft, KubeObject, PodSpec, Secret } from '../../api/wire.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { ownField } from '../../lib/fields.ts';
import { anyObject, type Check, integer, list, map, opaque, record, refuse } from '../../lib/untrusted.ts';
import type { JournalEntry } from './journal-entry.ts';

/** The label of journals; its value is the tenant namespace. */
export const LABEL_JOURNAL = 'tributary.dev/journal';
const JOURNAL_TYPE = 'tributary.dev/journal';
const KEY = 'journal';
const FORM = 1;

/** Of gzip in one Secret. An API server takes objects of up to 1.5 MiB, and the gzip becomes base64. */
const MAX_BYTES = 700 * 1024;
/** What is unpacked at most when reading. */
const MAX_UNPACKED = 64 * 1024 * 1024;
/** What is written at most, unpacked: who reads it has it three times in memory, packed, as text and as objects. */
const MOST_WRITTEN = MAX_UNPACKED / 4;
/** How full a Secret is at the beginning: results and restarts still come later. */
const FILL = { packed: 250 * 1024, unpacked: 1024 * 1024 };
/** How much is packed to estimate the ratio: more would give the same ratio, and take seconds. */
const SAMPLE_BYTES = 2 * 1024 * 1024;
/** After how much text other work of the event loop gets a turn. */
const SLICE_BYTES = 512 * 1024;
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
  /** Since when the home is away, RFC 3339. The only use of the wall clock, because it must survive a restart. */
  since: string;
  shards: number;
  /** The marks of the home's Leases at that time, by namespace; absent in journals of earlier releases. */
  marks?: Record<string, string>;
}

export interface Shard extends JournalHead {
  shard: number;
  entries: JournalEntry[];
}

export const journalName = (namespace: string, shard: number): string =>
  `tributary-journal-${namespace}-${shard}`;

/** Depends only on the UID of the home pod, so that a pod stays in its shard. */
export const shardOf = (homeUid: string, shards: number): number =>
  createHash('sha256').update(homeUid).digest().readUInt32BE(0) % shards;

/** How many Secrets a journal needs, by its packed and unpacked size; fixed when it begins. */
export async function shardsFor(entries: readonly JournalEntry[]): Promise<number> {
  let bytes = 0;
  for await (const text of textsOf(entries)) bytes += Buffer.byteLength(text);
  const stride = Math.max(1, Math.ceil(bytes / SAMPLE_BYTES));
  const sample = entries.filter((_, at) => at % stride === 0).map((entry) => JSON.stringify(entry));
  const sampled = Buffer.from(sample.join(''));
  const ratio = (await pack(sampled)).length / Math.max(1, sampled.length);
  const wanted = Math.max((bytes * ratio) / FILL.packed, bytes / FILL.unpacked);
  return Math.min(MAX_SHARDS, Math.max(1, Math.ceil(wanted)));
}

/** Throws Invalid where the shard would not fit, or could not be read again. */
export async function shardSecret(shard: Shard): Promise<Draft<Secret>> {
  const { namespace, namespaceUid, peer, since, shards, marks, entries } = shard;
  const name = journalName(namespace, shard.shard);
  const head = { form: FORM, since, shards, marks, shard: shard.shard };
  try {
    contentOf({ ...head, entries });
  } catch (error) {
    refuseShard(name, `could not be read again (${errorMessage(error)})`);
  }
  const texts: string[] = [];
  let bytes = 0;
  for await (const text of textsOf(entries)) {
    texts.push(text);
    bytes += Buffer.byteLength(text);
    if (bytes > MOST_WRITTEN)
      refuseShard(
        name,
        `would have more than ${MOST_WRITTEN} bytes unpacked, which is the most that is written`,
      );
  }
  const packed = await pack(`${JSON.stringify(head).slice(0, -1)},"entries":[${texts.join(',')}]}`);
  if (packed.length > MAX_BYTES)
    refuseShard(name, `would have ${packed.length} bytes, at most ${MAX_BYTES} are allowed`);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: PEERS_NAMESPACE,
      name,
      labels: { [LABEL_APP_NAME]: APP_NAME, [LABEL_PEER]: peer, [LABEL_JOURNAL]: namespace },
      // It is deleted with the tenant, even when no guardian runs.
      ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: namespace, uid: namespaceUid }],
    },
    type: JOURNAL_TYPE,
    data: { [KEY]: packed.toString('base64') },
  };
}

function refuseShard(name: string, why: string): never {
  const consequence = 'what becomes of its pods while their home is away is not written down any more';
  throw new TributaryError('Invalid', `journal ${name} ${why}; ${consequence}`);
}

/** Entries as JSON, one after another, because all at once would block the event loop for long. */
async function* textsOf(entries: readonly JournalEntry[]): AsyncGenerator<string, void, undefined> {
  let held = 0;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    yield text;
    held += text.length;
    if (held < SLICE_BYTES) continue;
    held = 0;
    await nextTurn();
  }
}

/** Throws Invalid. Its message repeats nothing of the content. */
export async function readShard({ metadata, data }: Secret): Promise<Shard> {
  const { labels = {}, ownerReferences = [], name } = metadata;
  try {
    const packed = Buffer.from(data?.[KEY] ?? '', 'base64');
    const text = (await unpack(packed, { maxOutputLength: MAX_UNPACKED })).toString('utf8');
    return {
      namespace: labels[LABEL_JOURNAL] ?? '',
      namespaceUid: ownerReferences[0]?.uid ?? '',
      peer: labels[LABEL_PEER] ?? '',
      ...contentOf(JSON.parse(text)),
    };
  } catch (error) {
    const why = error instanceof SyntaxError ? 'not JSON' : errorMessage(error);
    throw new TributaryError('Invalid', `Secret ${name} does not hold a journal (${why})`);
  }
}

const anyText = opaque(MAX_TEXT);
const shortText = opaque(64);

const time: Check<string> = (value, path) => {
  const text = shortText(value, path);
  return Number.isNaN(Date.parse(text)) ? refuse(path, 'is not a time') : text;
};

const podSpec: Check<PodSpec> = (value, path) => {
  const spec = anyObject(value, path);
  // The API server checks the rest when a pod is made of it.
  list(anyObject, MAX_NAMES)(ownField(spec, 'containers'), `${path}.containers`);
  return spec as unknown as PodSpec;
};

const journalEntry: Check<JournalEntry> = record(
  {
    name: anyText,
    homeUid: anyText,
    uid: anyText,
    created: time,
    labels: map(anyText, MAX_NAMES),
    annotations: map(anyText, MAX_NAMES),
    spec: podSpec,
    restarts: map(integer(0, 2 ** 31), MAX_NAMES),
  },
  { result: anyObject, leaving: (value) => (value === true ? value : undefined) },
);

const content = record(
  {
    form: integer(FORM, FORM),
    since: time,
    shards: integer(1, MAX_SHARDS),
    shard: integer(0, MAX_SHARDS - 1),
    entries: list(journalEntry, MAX_ENTRIES),
  },
  { marks: map(anyText, MAX_ENTRIES) },
);

function contentOf(value: unknown): Omit<Shard, 'namespace' | 'namespaceUid' | 'peer'> {
  const { form: _form, ...known } = content(value, 'journal');
  if (known.shard >= known.shards) refuse('journal.shard', `is ${known.shard} of ${known.shards}`);
  return known;
}

/**
 * Whether its home has renewed no Lease since. Else the home was there, and has itself seen or deleted what disappeared
 * meanwhile.
 */
export const isOfAbsence = ({ marks }: JournalHead, now: Readonly<Record<string, string>>): boolean =>
  marks === undefined ||
  Object.entries(now).every(
    ([namespace, mark]) => Object.hasOwn(marks, namespace) && marks[namespace] === mark,
  );

/** Whether it belongs to the existing tenant namespace, not to an earlier one with the same name. */
export const isOf = ({ namespaceUid }: JournalHead, { metadata }: KubeObject): boolean =>
  namespaceUid === metadata.uid;
