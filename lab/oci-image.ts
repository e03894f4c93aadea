/**
 * Writes container images as an OCI image layout in a tar archive, which containerd imports: no registry, no daemon, no
 * root. The same input gives the same bytes.
 * Format: the OCI image specification 1.0 (image-layout.md, manifest.md, config.md).
 */
import { createHash } from 'node:crypto';
import { constants, zstdCompressSync } from 'node:zlib';

import { tar, type TarEntry } from './tar.ts';

export interface ImageSpec {
  /** The full name with its tag; a short one would be looked up in a registry. */
  readonly name: string;
  readonly entries: readonly TarEntry[];
  /** A file tree below the entries, as a tar archive. Default: mount points and a few users. */
  readonly base?: Buffer;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Numeric `uid` or `uid:gid`, so that Kubernetes can tell that it is not root. Default: root. */
  readonly user?: string;
  readonly workingDir?: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** What every image has: mount points, users that have names, a world-writable /tmp. */
const skeleton: readonly TarEntry[] = [
  { type: 'directory', path: 'dev' },
  { type: 'directory', path: 'proc' },
  { type: 'directory', path: 'sys' },
  { type: 'directory', path: 'tmp', mode: 0o1777 },
  {
    type: 'file',
    path: 'etc/passwd',
    content: Buffer.from(
      'root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n' +
        'nobody:x:65534:65534:nobody:/tmp:/bin/false\n',
    ),
  },
  {
    type: 'file',
    path: 'etc/group',
    content: Buffer.from('root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n'),
  },
];

/** The archive of one image, ready for `ctr images import`. */
export const ociImage = (spec: ImageSpec): Buffer => ociArchive([spec]);

/** One archive of several images. What they share (a base, a layer) is in it once. */
export function ociArchive(specs: readonly ImageSpec[]): Buffer {
  const blobs = new Blobs();
  const manifests = specs.map((spec) => {
    if (!/^[^/]+\.[^/]+\/.+:[^:/]+$/.test(spec.name)) throw new Error(`not a full image name: ${spec.name}`);
    const layers = (
      spec.base === undefined ? [tar([...skeleton, ...spec.entries])] : [spec.base, tar(spec.entries)]
    ).map((archive) => blobs.layer(archive));
    const config = blobs.add('config.v1+json', json(imageConfig(spec, layers)));
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config,
      layers: layers.map(({ blob }) => blob),
    };
    const annotations = {
      'io.containerd.image.name': spec.name,
      'org.opencontainers.image.ref.name': spec.name.slice(spec.name.lastIndexOf(':') + 1),
    };
    return { ...blobs.add('manifest.v1+json', json(manifest)), platform, annotations };
  });
  return tar([
    { type: 'file', path: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
    { type: 'file', path: 'index.json', content: json({ schemaVersion: 2, manifests }) },
    ...blobs.entries(),
  ]);
}

interface Layer {
  readonly blob: Descriptor;
  /** The digest of the archive before compression. */
  readonly diffId: string;
}

/** The content of an archive by digest. */
class Blobs {
  readonly #bytes = new Map<string, Buffer>();
  readonly #layers = new Map<string, Layer>();

  add(mediaType: string, bytes: Buffer): Descriptor {
    const digest = sha256(bytes);
    this.#bytes.set(digest, bytes);
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest, size: bytes.length };
  }

  layer(archive: Buffer): Layer {
    const diffId = sha256(archive);
    // zstd rather than gzip: every node unpacks every image, and this unpacks several times faster.
    const layer = this.#layers.get(diffId) ?? {
      blob: this.add('layer.v1.tar+zstd', compress(archive)),
      diffId,
    };
    this.#layers.set(diffId, layer);
    return layer;
  }

  entries(): TarEntry[] {
    return [...this.#bytes].map(([digest, content]) => ({
      type: 'file',
      path: `blobs/${digest.replace(':', '/')}`,
      content,
    }));
  }
}

const platform = { architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch, os: 'linux' };

function imageConfig(spec: ImageSpec, layers: readonly Layer[]): object {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', ...spec.env };
  return {
    ...platform,
    config: {
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...(spec.entrypoint && { Entrypoint: spec.entrypoint }),
      ...(spec.command && { Cmd: spec.command }),
      ...(spec.user && { User: spec.user }),
      ...(spec.workingDir && { WorkingDir: spec.workingDir }),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: [{ created_by: 'tributary lab' }],
  };
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const compress = (bytes: Buffer): Buffer =>
  zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
