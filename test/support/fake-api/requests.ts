import type { ResourceType } from '../../../src/api/resources.ts';
import type { KubeObject } from '../../../src/api/wire.ts';
import { type AnyObject, ApiFailure, type FakeStorage, keyOf, notFound } from './storage.ts';
import type { FakeWatches, Response } from './watch.ts';
import { FakeWrites, type Target } from './writes.ts';
import { matchesFields, matchesLabels } from './selectors.ts';

export interface ApiRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
  accept: string;
  contentType: string;
  /** Fault: answer a list without its items. */
  empty: boolean;
}

interface Parts {
  type: ResourceType<KubeObject>;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

export interface FakeRequestsOptions {
  storage: FakeStorage;
  watches: FakeWatches;
  types: readonly ResourceType<KubeObject>[];
  now: () => number;
}

interface EvictionOptions {
  dryRun?: string[];
  preconditions?: { uid?: string };
}

/** Routes requests to storage, as the handlers of an API server do. */
export class FakeRequests {
  readonly #options: FakeRequestsOptions;
  readonly #writes: FakeWrites;
  readonly #pages = new Map<string, { items: AnyObject[]; revision: string }>();
  #pageTokens = 0;

  constructor(options: FakeRequestsOptions) {
    this.#options = options;
    this.#writes = new FakeWrites(options.storage, options.now);
  }

  seed(type: ResourceType<KubeObject>, object: AnyObject): AnyObject {
    const { namespace, name } = object.metadata;
    const target = targetOf({ type, namespace, name, subresource: undefined });
    const created = this.#writes.create(target, namespace, object);
    const { status } = object;
    if (status === undefined) return created;
    return this.#writes.replace({ ...target, subresource: 'status' }, { ...created, status });
  }

  serve(request: ApiRequest, response: Response): void {
    const parts = this.#parse(request.path);
    const { method, query } = request;
    if (method === 'GET' && parts.name === undefined) {
      if (query.get('watch') === 'true') this.#watch(request, parts, response);
      else send(response, 200, this.#list(request, parts));
    } else if (method === 'GET') {
      send(response, 200, shape(this.#get(parts), request.accept));
    } else if (method === 'POST') {
      send(response, 201, shape(this.#post(request, parts), request.accept));
    } else {
      send(response, 200, shape(this.#write(request, parts), request.accept));
    }
  }

  #write({ method, contentType, body }: ApiRequest, parts: Parts): AnyObject {
    const target = targetOf(parts);
    if (method === 'PUT') return this.#writes.replace(target, body as AnyObject);
    if (method === 'PATCH') return this.#writes.patch(target, contentType, body);
    if (method === 'DELETE') return this.#writes.delete(target, body ?? {});
    throw new ApiFailure(405, 'MethodNotAllowed', `${method} is not supported`);
  }

  #post({ body, query }: ApiRequest, parts: Parts): AnyObject {
    const object = body as AnyObject;
    if (parts.subresource === undefined) {
      const dryRun = query.has('dryRun');
      return this.#writes.create(targetOf(parts), parts.namespace, object, { dryRun });
    }
    const owner = this.#get({ ...parts, subresource: undefined });
    if (parts.subresource === 'eviction') {
      const { deleteOptions = {} } = object as unknown as { deleteOptions?: EvictionOptions };
      if (deleteOptions.dryRun !== undefined) return owner;
      return this.#writes.delete({ ...targetOf(parts), subresource: undefined }, deleteOptions);
    }
    if (parts.subresource === 'token') {
      const status = {
        token: `token-of-${owner.metadata.name}`,
        expirationTimestamp: '2099-01-01T00:00:00Z',
      };
      return { ...object, metadata: owner.metadata, status };
    }
    if (parts.subresource === 'binding') {
      const { name: nodeName } = (object as unknown as { target: { name: string } }).target;
      return this.#writes.replace(
        { ...targetOf(parts), subresource: undefined },
        { ...owner, spec: { ...owner.spec, nodeName } },
      );
    }
    throw notFound(parts.type.plural, parts.subresource);
  }

  #get(parts: Parts): AnyObject {
    const { storage } = this.#options;
    const { resource, key } = targetOf(parts);
    const object = storage.get(resource, key);
    if (object === undefined) throw notFound(parts.type.plural, parts.name ?? '');
    return object;
  }

  #list({ query, accept, empty }: ApiRequest, parts: Parts): object {
    const limit = Number(query.get('limit') ?? 0);
    const { items: found, revision } = this.#found(query, parts);
    const all = empty ? [] : found;
    const items = limit > 0 ? all.slice(0, limit) : all;
    const rest = all.slice(items.length);
    const metadata: Record<string, unknown> = { resourceVersion: revision };
    if (rest.length > 0) {
      const next = `page-${this.#pageTokens++}`;
      this.#pages.set(next, { items: rest, revision });
      metadata['continue'] = next;
      metadata['remainingItemCount'] = rest.length;
    }
    const partial = accept.includes('as=PartialObjectMetadataList');
    const { kind, apiVersion } = targetOf(parts);
    return {
      kind: partial ? 'PartialObjectMetadataList' : `${kind}List`,
      apiVersion: partial ? 'meta.k8s.io/v1' : apiVersion,
      metadata,
      // Items of real lists have neither kind nor apiVersion.
      items: items.map((item) => {
        const { kind: _kind, apiVersion: _version, ...bare } = shape(item, accept) as AnyObject;
        return bare;
      }),
    };
  }

  /** The items that are left to list: from the snapshot with which a continued list began, or from the current state. */
  #found(query: URLSearchParams, parts: Parts): { items: AnyObject[]; revision: string } {
    const { storage } = this.#options;
    const token = query.get('continue');
    const asked = query.get('resourceVersion');
    if (token !== null) {
      const page = this.#pages.get(token);
      if (page === undefined)
        throw new ApiFailure(410, 'Expired', 'The provided continue parameter is too old');
      return page;
    }
    if (asked !== null && Number(asked) > storage.revision) {
      const message = `Too large resource version: ${asked}, current: ${storage.revision}`;
      throw new ApiFailure(504, 'Timeout', message);
    }
    const items = storage.list(targetOf(parts).resource).filter(selector(query, parts));
    return { items, revision: String(storage.revision) };
  }

  #watch({ query, accept }: ApiRequest, parts: Parts, response: Response): void {
    const { watches } = this.#options;
    const timeout = query.get('timeoutSeconds');
    const { resource, kind, apiVersion } = targetOf(parts);
    watches.serve(
      {
        resource,
        kind,
        apiVersion,
        from: query.get('resourceVersion') ?? '',
        bookmarks: query.get('allowWatchBookmarks') === 'true',
        timeoutSeconds: timeout === null ? undefined : Number(timeout),
        matches: selector(query, parts),
        view: (object) => shape(object, accept),
      },
      response,
    );
  }

  #parse(path: string): Parts {
    const steps = path.split('/').slice(1).map(decodeURIComponent);
    const group = steps.shift() === 'api' ? '' : steps.shift();
    const version = steps.shift();
    const inNamespace = steps[0] === 'namespaces' && steps.length > 2;
    const namespace = inNamespace ? steps[1] : undefined;
    const [plural, name, subresource] = inNamespace ? steps.slice(2) : steps;
    const type = this.#options.types.find(
      (known) => known.group === group && known.version === version && known.plural === plural,
    );
    // `/namespaces/a/status` and `/namespaces/a/pods` look alike; only the latter names a resource.
    if (type === undefined && inNamespace && group === '' && (plural === 'status' || plural === 'finalize')) {
      return { ...this.#parse(`/api/${version}/namespaces/${namespace}`), subresource: plural };
    }
    return type === undefined ? fail(path) : { type, namespace, name, subresource };
  }
}

function fail(path: string): never {
  throw new ApiFailure(404, 'NotFound', `the server could not find the requested resource: ${path}`);
}

function targetOf({ type, namespace, name, subresource }: Parts): Target {
  const { group, version, plural, kind } = type;
  return {
    resource: group === '' ? plural : `${plural}.${group}`,
    kind,
    apiVersion: group === '' ? version : `${group}/${version}`,
    key: keyOf({ metadata: { name: name ?? '', ...(namespace === undefined ? {} : { namespace }) } }),
    subresource,
  };
}

function selector(query: URLSearchParams, { namespace }: Parts): (object: AnyObject) => boolean {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    matchesLabels(labels, object.metadata.labels) &&
    matchesFields(fields, object);
}

/** Adds managedFields, since every object of a real server has them, and cuts to metadata where asked. */
function shape(object: AnyObject, accept: string): object {
  const managedFields = [{ manager: 'fake', operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: {} }];
  const metadata = { ...object.metadata, managedFields };
  if (!accept.includes('as=PartialObjectMetadata')) return { ...object, metadata };
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

function send(response: Response, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
