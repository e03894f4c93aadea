import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';

import { describe, expect, test } from '@jest/globals';

import { isStatic } from '../../../lab/images.ts';
import { ociArchive, ociImage, type ImageSpec } from '../../../lab/oci-image.ts';
import { tar } from '../../../lab/tar.ts';

const list = (archive: Buffer): string =>
  execFileSync('tar', ['-tvf', '-', '--numeric-owner', '--full-time', '--utc'], {
    input: archive,
    encoding: 'utf8',
  });
const extract = (archive: Buffer, path: string): Buffer =>
  execFileSync('tar', ['-xOf', '-', path], { input: archive });

describe('tar', () => {
  test('writes files, folders and links that tar(1) reads, sorted and without times', () => {
    const archive = tar([
      { type: 'symlink', path: '/bin/sh', target: 'busybox' },
      { type: 'file', path: 'bin/busybox', content: Buffer.from('x'.repeat(600)), mode: 0o755 },
      { type: 'directory', path: 'tmp/', mode: 0o1777 },
    ]);
    expect(archive.length % 512).toBe(0);
    expect(
      list(archive)
        .split('\n')
        .map((line) => line.replaceAll(/ +/g, ' ')),
    ).toEqual([
      'drwxr-xr-x 0/0 0 1970-01-01 00:00:00 bin/',
      '-rwxr-xr-x 0/0 600 1970-01-01 00:00:00 bin/busybox',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00:00 bin/sh -> busybox',
      'drwxrwxrwt 0/0 0 1970-01-01 00:00:00 tmp/',
      '',
    ]);
    expect(extract(archive, 'bin/busybox').toString()).toBe('x'.repeat(600));
  });

  test('is the same whatever the order of its entries', () => {
    const [a, b] = ['a', 'b'].map((path) => ({ type: 'file', path, content: Buffer.from(path) }) as const);
    if (!a || !b) throw new Error('unreachable');
    expect(tar([a, b]).equals(tar([b, a]))).toBe(true);
  });

  test('keeps long paths, and refuses longer ones', () => {
    const path = `${'folder/'.repeat(20)}${'n'.repeat(90)}`;
    expect(extract(tar([{ type: 'file', path, content: Buffer.from('here') }]), path).toString()).toBe(
      'here',
    );
    expect(() => tar([{ type: 'file', path: 'n'.repeat(101), content: Buffer.alloc(0) }])).toThrow(
      'too long',
    );
  });

  test('refuses two entries at one path, and files in files', () => {
    const content = Buffer.alloc(0);
    const file = (path: string) => ({ type: 'file', path, content }) as const;
    expect(() => tar([file('a'), file('/a')])).toThrow('two entries at /a');
    expect(() => tar([file('a'), file('a/b')])).toThrow('/a is not a folder, yet /a/b is in it');
  });
});

describe('ociImage', () => {
  const spec: ImageSpec = {
    name: 'lab.local/hello:1',
    entries: [{ type: 'file', path: 'hello', content: Buffer.from('hello'), mode: 0o755 }],
    entrypoint: ['/hello'],
    user: '65532:65532',
  };
  const json = (archive: Buffer, path: string): Record<string, never> =>
    JSON.parse(extract(archive, path).toString()) as Record<string, never>;
  const blobPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;

  test('is an OCI layout whose digests hold', () => {
    const archive = ociImage(spec);
    expect(json(archive, 'oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' });
    const { manifests } = json(archive, 'index.json') as unknown as {
      manifests: { digest: string; annotations: Record<string, string> }[];
    };
    expect(manifests[0]?.annotations).toEqual({
      'io.containerd.image.name': 'lab.local/hello:1',
      'org.opencontainers.image.ref.name': '1',
    });
    const manifest = json(archive, blobPath(manifests[0]?.digest ?? '')) as unknown as {
      config: { digest: string };
      layers: { digest: string; size: number }[];
    };
    const config = json(archive, blobPath(manifest.config.digest)) as unknown as {
      config: unknown;
      rootfs: { diff_ids: string[] };
    };
    expect(config.config).toEqual({
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'],
      Entrypoint: ['/hello'],
      User: '65532:65532',
    });
    const layer = extract(archive, blobPath(manifest.layers[0]?.digest ?? ''));
    const filesystem = zstdDecompressSync(layer);
    expect(layer.length).toBe(manifest.layers[0]?.size);
    expect(config.rootfs.diff_ids).toEqual([
      `sha256:${createHash('sha256').update(filesystem).digest('hex')}`,
    ]);
    expect(extract(filesystem, 'hello').toString()).toBe('hello');
    expect(extract(filesystem, 'etc/passwd').toString()).toContain('nonroot:x:65532:');
  });

  test('several images share a base, which is in their archive once', () => {
    const base = tar([{ type: 'file', path: 'bin/sh', content: Buffer.from('a shell') }]);
    const images = ['one', 'two'].map((name) => ({
      name: `lab.local/${name}:1`,
      base,
      entries: [{ type: 'file', path: 'name', content: Buffer.from(name) } as const],
    }));
    const archive = ociArchive(images);
    const { manifests } = json(archive, 'index.json') as unknown as { manifests: { digest: string }[] };
    const layers = manifests.map(({ digest }) => {
      const manifest = json(archive, blobPath(digest)) as unknown as { layers: { digest: string }[] };
      return manifest.layers.map((layer) => layer.digest);
    });
    expect(layers.map((digests) => digests.length)).toEqual([2, 2]);
    expect(layers[0]?.[0]).toBe(layers[1]?.[0]);
    const own = layers.map(([, digest = '']) => zstdDecompressSync(extract(archive, blobPath(digest))));
    expect(own.map((layer) => extract(layer, 'name').toString())).toEqual(['one', 'two']);
    // Three layers, two configurations and two manifests.
    expect(list(archive).match(/blobs\/sha256\/\w/g)).toHaveLength(7);
  });

  test('is the same every time', () => {
    expect(ociImage(spec).equals(ociImage(spec))).toBe(true);
  });

  test.each(['hello', 'hello:1', 'library/hello:1', 'lab.local/hello'])('refuses the name %s', (name) => {
    expect(() => ociImage({ ...spec, name })).toThrow(`not a full image name: ${name}`);
  });
});

test.each([
  [[1, 2], true],
  [[1, 3, 2], false],
])('an ELF program with program headers %j is static: %s', (types, expected) => {
  const program = Buffer.alloc(64 + types.length * 56);
  program.writeBigUInt64LE(64n, 32);
  program.writeUInt16LE(56, 54);
  program.writeUInt16LE(types.length, 56);
  types.forEach((type, index) => program.writeUInt32LE(type, 64 + index * 56));
  expect(isStatic(program)).toBe(expected);
});
