/**
 * The registry of one node: it gives out what the node's own containerd holds, so that pods whose images are pulled anew
 * (`imagePullPolicy: Always`) start without any network. As much of the distribution specification of OCI as a pull needs.
 *
 *     node lab/registry.ts PORT CONTAINERD_SOCKET CONTAINERD_ROOT
 */
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';

import { run } from './run.ts';

/** On loopback of the node's network namespace. */
export const REGISTRY_PORT = 5000;

const DIGEST = /^sha256:[0-9a-f]{64}$/u;
const PATH = /^\/v2\/(?<name>.+)\/(?<what>manifests|blobs)\/(?<reference>[^/]+)$/u;

/** What containerd reads for each registry that it knows nothing else of: ask us, and nobody else. */
export const hostsToml: string = `server = "http://127.0.0.1:${REGISTRY_PORT}"
[host."http://127.0.0.1:${REGISTRY_PORT}"]
  capabilities = ["pull", "resolve"]
`;

interface Asked {
  method: string;
  what: string;
  image: string;
  digest: string | undefined;
}

class NodeRegistry {
  readonly #socket: string;
  readonly #blobs: string;

  constructor(socket: string, root: string) {
    this.#socket = socket;
    this.#blobs = join(root, 'io.containerd.content.v1.content', 'blobs', 'sha256');
  }

  async answer(method: string, url: URL, response: ServerResponse): Promise<void> {
    if (url.pathname === '/v2/') return void response.end('{}');
    const { name = '', what = '', reference = '' } = PATH.exec(url.pathname)?.groups ?? {};
    // containerd says by `ns` which registry it would have asked.
    const image = `${url.searchParams.get('ns') ?? 'lab.local'}/${name}:${reference}`;
    const digest = DIGEST.test(reference) ? reference : await this.#digestOf(image);
    this.#give({ method, what, image, digest }, response);
  }

  #give({ method, what, image, digest }: Asked, response: ServerResponse): void {
    const file = join(this.#blobs, digest?.slice('sha256:'.length) ?? 'none');
    if (digest === undefined || !existsSync(file)) {
      const code = what === 'manifests' ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN';
      response.writeHead(404, { 'content-type': 'application/json' });
      return void response.end(
        JSON.stringify({ errors: [{ code, message: `${image} is not on this node` }] }),
      );
    }
    response.writeHead(200, {
      'content-type': what === 'manifests' ? mediaTypeOf(file) : 'application/octet-stream',
      'content-length': statSync(file).size,
      'docker-content-digest': digest,
    });
    if (method === 'HEAD') response.end();
    else createReadStream(file).pipe(response);
  }

  async #digestOf(image: string): Promise<string | undefined> {
    const args = ['-a', this.#socket, '-n', 'k8s.io', 'images', 'ls', `name==${image}`];
    const [, line = ''] = (await run(['ctr', ...args], { timeoutMs: 10_000 })).split('\n');
    return line.split(/\s+/u).find((word) => DIGEST.test(word));
  }
}

function mediaTypeOf(file: string): string {
  const { mediaType, manifests } = JSON.parse(readFileSync(file, 'utf8')) as {
    mediaType?: string;
    manifests?: unknown;
  };
  const kind = manifests === undefined ? 'manifest' : 'index';
  return mediaType ?? `application/vnd.oci.image.${kind}.v1+json`;
}

if (import.meta.main) {
  const [port = '', socket = '', root = ''] = process.argv.slice(2);
  const registry = new NodeRegistry(socket, root);
  createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://registry');
    registry.answer(request.method ?? '', url, response).catch((error: unknown) => {
      process.stderr.write(`${url.pathname}: ${String(error)}\n`);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  }).listen(Number(port), '127.0.0.1');
}
