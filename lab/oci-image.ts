/**
 * Writes a container image of one layer as an OCI image layout in a tar archive, which containerd imports:
 * no registry, no daemon, no root. The same input gives the same bytes.
 * Format: the OCI image specification 1.0 (image-layout.md, manifest.md, config.md).
 */
import { createHash } from 'node:crypto';
import { constants, zstdCompressSync } from 'node:zlib';

import { tar, type TarEntry } from './tar.ts';

export interface ImageSpec {
  /** The full name with its tag; a short one would be looked up in a registry. */
  readonly name: string;
  readonly entries: readonly TarEntry[];
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

/** The archive, ready for `ctr images import`. */
export function ociImage(spec: ImageSpec): Buffer {
  if (!/^[^/]+\.[^/]+\/.+:[^:/]+$/.test(spec.name)) throw new Error(`not a full image name: ${spec.name}`);
  const blobs = new Map<string, Buffer>();
  const blob = (mediaType: string, bytes: Buffer): Descriptor => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest, size: bytes.length };
  };
  const platform = { architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch, os: 'linux' };

  const filesystem = tar([...skeleton, ...spec.entries]);
  // zstd rather than gzip: every node unpacks every image, and this unpacks several times faster.
  const layer = blob('layer.v1.tar+zstd', compress(filesystem));
  const config = blob('config.v1+json', json(imageConfig(spec, platform, sha256(filesystem))));
  const manifest = blob(
    'manifest.v1+json',
    json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config,
      layers: [layer],
    }),
  );
  const annotations = {
    'io.containerd.image.name': spec.name,
    'org.opencontainers.image.ref.name': spec.name.slice(spec.name.lastIndexOf(':') + 1),
  };
  const index = { schemaVersion: 2, manifests: [{ ...manifest, platform, annotations }] };
  return tar([
    { type: 'file', path: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
    { type: 'file', path: 'index.json', content: json(index) },
    ...[...blobs].map(
      ([digest, bytes]) =>
        ({ type: 'file', path: `blobs/${digest.replace(':', '/')}`, content: bytes }) as const,
    ),
  ]);
}

function imageConfig(spec: ImageSpec, platform: object, diffId: string): object {
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
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created_by: 'tributary lab' }],
  };
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const compress = (bytes: Buffer): Buffer =>
  zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
