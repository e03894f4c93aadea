import type { IncomingMessage } from 'node:http';

import {
  type Admission,
  CAUSE_WRITE_BUDGET,
  type ClaimQuestion,
  type Question,
  type WriteQuestion,
} from '../../api/admission.ts';
import type { Pod } from '../../api/wire.ts';
import { TributaryError } from '../../lib/errors.ts';
import { type Fields, isFields, ownField } from '../../lib/fields.ts';

export interface BodyLimits {
  /** Of one request. An API server accepts objects of up to 3 MiB, and adds who asks. */
  bytes: number;
  /** Of all requests that are being read. */
  total: number;
}

const DEFAULT_BODY_LIMITS: Readonly<BodyLimits> = {
  bytes: 4 * 1024 * 1024,
  total: 48 * 1024 * 1024,
};

/** Reads bodies, and keeps count of what is held at a time, so that strangers cannot take all memory. */
export class BodyReader {
  readonly #limits: BodyLimits;
  #held = 0;

  constructor(limits: BodyLimits = DEFAULT_BODY_LIMITS) {
    this.#limits = limits;
  }

  /** Throws Invalid for one that is too long, TooManyRequests where there is no room now, Aborted when the sender gives up. */
  async read(request: IncomingMessage): Promise<string> {
    if (Number(request.headers['content-length'] ?? 0) > this.#limits.bytes) throw tooLong(this.#limits);
    const chunks: Buffer[] = [];
    let length = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Not `for await`, which would destroy the connection before the refusal is sent.
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      this.#held += chunk.length;
      chunks.push(chunk);
      if (length > this.#limits.bytes) reject(tooLong(this.#limits));
      else if (this.#held > this.#limits.total) reject(noRoom());
    });
    request.once('end', resolve);
    const gaveUp = (): void => reject(new TributaryError('Aborted', 'the sender gave up'));
    request.once('error', gaveUp);
    request.once('close', gaveUp);
    try {
      await promise;
      return Buffer.concat(chunks).toString('utf8');
    } catch (error) {
      request.removeAllListeners('data').pause();
      throw error;
    } finally {
      this.#held -= length;
    }
  }
}

const noRoom = (): TributaryError =>
  new TributaryError('TooManyRequests', 'too many requests are being read');

const tooLong = ({ bytes }: BodyLimits): TributaryError =>
  new TributaryError('Invalid', `the body is longer than ${bytes} bytes`, { status: 413 });

/** AdmissionReview of admission.k8s.io/v1, checked by hand: anybody who reaches the port can send one. */

const VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
const MAX_UID_LENGTH = 128;
/** Of node affinity. Far more than anybody has, and few enough to be gone through in milliseconds. */
const MAX_TERMS = 4_096;

export interface ReviewRequest {
  uid: string;
  /** Undefined: the review is about something that none of our webhooks judges. */
  question: Question | undefined;
  claim?: ClaimQuestion;
  /** Undefined: it is about something else than a write. */
  write: WriteQuestion | undefined;
}

/** `isAboutWrites`: nobody asks for the pod or the claim. Throws Invalid for anything but an AdmissionReview with a request. */
export function parseReview(text: string, isAboutWrites: boolean): ReviewRequest {
  const review = record(parseJson(text), 'the body');
  if (ownField(review, 'apiVersion') !== VERSION || ownField(review, 'kind') !== KIND) {
    throw new TributaryError('Invalid', `the body is no ${KIND} of ${VERSION}`);
  }
  const request = record(ownField(review, 'request'), 'request');
  const uid = ownField(request, 'uid');
  if (typeof uid !== 'string' || uid === '' || uid.length > MAX_UID_LENGTH) {
    throw new TributaryError('Invalid', 'request.uid is no UID');
  }
  const write = writeOf(request);
  if (isAboutWrites) return { uid, write, question: undefined };
  if (isNewClaim(request)) return { uid, write, question: undefined, claim: claimOf(request) };
  return { uid, write, question: questionOf(request) };
}

function writeOf(request: Fields): WriteQuestion | undefined {
  const [operation, said] = [ownField(request, 'operation'), ownField(request, 'resource')];
  const [now, before] = [ownField(request, 'object'), ownField(request, 'oldObject')];
  const object = operation === 'DELETE' ? before : now;
  if (operation !== 'CREATE' && operation !== 'UPDATE' && operation !== 'DELETE') return undefined;
  if (!isFields(said) || !isFields(object)) return undefined;
  const text = (holder: Fields, name: string): string => {
    const value = ownField(holder, name);
    return typeof value === 'string' ? value : '';
  };
  return {
    namespace: namespaceOf(request),
    group: text(said, 'group'),
    resource: text(said, 'resource'),
    // Empty where the API server is to choose one.
    name: text(request, 'name'),
    operation,
    object,
    oldObject: isFields(before) ? before : undefined,
    isDryRun: ownField(request, 'dryRun') === true,
  };
}

function questionOf(request: Fields): Question | undefined {
  const about = aboutOf(request);
  if (about === undefined) return undefined;
  const before = ownField(request, 'oldObject');
  return {
    namespace: namespaceOf(request),
    pod: podOf(ownField(request, 'object'), 'request.object'),
    ...(!isAbsent(before) && { before: podOf(before, 'request.oldObject') }),
    about,
    isDryRun: ownField(request, 'dryRun') === true,
  };
}

const namespaceOf = (request: Fields): string => {
  const namespace = ownField(request, 'namespace');
  return typeof namespace === 'string' ? namespace : '';
};

const isNewClaim = (request: Fields): boolean =>
  isKind(request, 'PersistentVolumeClaim') &&
  ownField(request, 'operation') === 'CREATE' &&
  (ownField(request, 'subResource') ?? '') === '';

function claimOf(request: Fields): ClaimQuestion {
  const claim = record(ownField(request, 'object'), 'request.object');
  record(ownField(claim, 'metadata'), 'metadata');
  const resources = ownField(record(ownField(claim, 'spec'), 'spec'), 'resources');
  if (!isAbsent(resources)) amounts(ownField(record(resources, 'resources'), 'requests'), 'requests');
  return {
    namespace: namespaceOf(request),
    claim: claim as unknown as ClaimQuestion['claim'],
    isDryRun: ownField(request, 'dryRun') === true,
  };
}

/** What is sent back. */
export function answerOf(uid: string, { patch, warnings, refusal, retryAfterSeconds }: Admission): object {
  return {
    apiVersion: VERSION,
    kind: KIND,
    response: {
      uid,
      allowed: refusal === undefined,
      ...(refusal !== undefined && { status: statusOfRefusal(refusal, retryAfterSeconds) }),
      ...(refusal === undefined &&
        patch.length > 0 && {
          patchType: 'JSONPatch',
          patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
        }),
      ...(warnings.length > 0 && { warnings }),
    },
  };
}

/** As from a quota, 403 is what whoever asks gets; 429 where it may come again. */
const statusOfRefusal = (message: string, retryAfterSeconds: number | undefined): object =>
  retryAfterSeconds === undefined
    ? { code: 403, reason: 'Forbidden', message }
    : {
        code: 429,
        reason: 'TooManyRequests',
        message,
        details: { retryAfterSeconds, causes: [{ reason: CAUSE_WRITE_BUDGET, message }] },
      };

function aboutOf(request: Fields): Question['about'] | undefined {
  if (!isKind(request, 'Pod')) return undefined;
  const operation = ownField(request, 'operation');
  const subresource = ownField(request, 'subResource') ?? '';
  if (operation === 'CREATE' && subresource === '') return 'Create';
  if (operation !== 'UPDATE') return undefined;
  if (subresource === 'resize') return 'Resize';
  if (subresource === '') return 'Change';
  return subresource === 'ephemeralcontainers' ? 'Debug' : undefined;
}

function isKind(request: Fields, wanted: string): boolean {
  const said = ownField(request, 'kind');
  const { group, version, kind } = isFields(said) ? said : {};
  return group === '' && version === 'v1' && kind === wanted;
}

/** What the decision reads has the right shape; the API server has checked the rest. */
function podOf(object: unknown, what: string): Pod {
  const pod = record(object, what);
  const metadata = record(ownField(pod, 'metadata'), 'metadata');
  const spec = record(ownField(pod, 'spec'), 'spec');
  texts(ownField(metadata, 'labels'), 'labels');
  texts(ownField(metadata, 'annotations'), 'annotations');
  objects(ownField(metadata, 'ownerReferences'), 'ownerReferences');
  texts(ownField(spec, 'nodeSelector'), 'nodeSelector');
  objects(ownField(spec, 'tolerations'), 'tolerations');
  for (const list of ['containers', 'initContainers', 'ephemeralContainers', 'volumes']) {
    objects(ownField(spec, list), list);
  }
  checkResources(pod, spec);
  checkAffinity(ownField(spec, 'affinity'));
  return pod as unknown as Pod;
}

/** Checks only the shapes; whoever adds the quantities up deals with those that cannot be read. */
function checkResources(pod: Fields, spec: Fields): void {
  const status = ownField(pod, 'status');
  for (const holder of [spec, ...(isAbsent(status) ? [] : [record(status, 'status')])]) {
    for (const list of ['containers', 'initContainers', 'containerStatuses', 'initContainerStatuses']) {
      for (const container of objects(ownField(holder, list), list)) checkAmounts(container);
    }
    checkAmounts(holder);
  }
}

function checkAmounts(holder: Fields): void {
  const resources = ownField(holder, 'resources');
  if (!isAbsent(resources)) amounts(ownField(record(resources, 'resources'), 'requests'), 'requests');
  amounts(ownField(holder, 'allocatedResources'), 'allocatedResources');
  amounts(ownField(holder, 'overhead'), 'overhead');
}

function amounts(value: unknown, what: string): void {
  if (isAbsent(value)) return;
  const isAmount = (item: unknown): boolean => typeof item === 'string' || typeof item === 'number';
  if (isFields(value) && Object.values(value).every(isAmount)) return;
  throw new TributaryError('Invalid', `${what} are no amounts`);
}

function checkAffinity(affinity: unknown): void {
  if (isAbsent(affinity)) return;
  const node = ownField(record(affinity, 'affinity'), 'nodeAffinity');
  if (isAbsent(node)) return;
  const required = ownField(record(node, 'nodeAffinity'), 'requiredDuringSchedulingIgnoredDuringExecution');
  if (isAbsent(required)) return;
  const terms = objects(ownField(record(required, 'required'), 'nodeSelectorTerms'), 'nodeSelectorTerms');
  if (terms.length > MAX_TERMS) throw new TributaryError('Invalid', 'too many nodeSelectorTerms');
  for (const term of terms) {
    for (const part of ['matchExpressions', 'matchFields']) {
      for (const { values } of objects(ownField(term, part), part)) checkValues(values);
    }
  }
}

function checkValues(values: unknown): void {
  if (isAbsent(values)) return;
  if (Array.isArray(values) && values.every((value) => typeof value === 'string')) return;
  throw new TributaryError('Invalid', 'values are no list of texts');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new TributaryError('Invalid', 'the body is no JSON');
  }
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

function record(value: unknown, what: string): Fields {
  if (isFields(value)) return value;
  throw new TributaryError('Invalid', `${what} is no object`);
}

function objects(value: unknown, what: string): readonly Fields[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value) && value.every((item) => isFields(item))) return value;
  throw new TributaryError('Invalid', `${what} is no list of objects`);
}

function texts(value: unknown, what: string): void {
  if (isAbsent(value)) return;
  if (isFields(value) && Object.values(value).every((item) => typeof item === 'string')) return;
  throw new TributaryError('Invalid', `${what} is no map of texts`);
}
