/**
 * Builds the program of the image: `src` and the packages that it uses in a few files, so that a role neither looks for some
 * hundreds of files at its start nor holds the parts of packages that nothing calls.
 *
 * Usage: node tools/build-program.ts [DIRECTORY]
 *   DIRECTORY has src, package.json and node_modules, and gets dist; the repository without it.
 */
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, type Metafile } from 'esbuild';

import { withoutModels } from './without-models.ts';

/**
 * Packages in CommonJS that are imported when they are first needed. Built, such an import has `default` and no other name, which no type tells:
 * so whoever adds one has to come here.
 */
export const BY_DEFAULT: readonly string[] = ['@peculiar/x509', 'multicast-dns', 'yaml'];

/** Nothing is taken from it: it is imported for its effect. */
const FOR_EFFECT = 'reflect-metadata';

/** Packages that stay beside the program: native code, and what finds it. */
const BESIDE = ['netlink'];

export async function buildProgram(root: string): Promise<void> {
  const out = join(root, 'dist');
  for (const file of globSync(join(out, '*.js'))) rmSync(file);
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: {
      main: 'src/main.ts',
      // A program of its own, which src/network/host/watch.ts starts from beside itself.
      'watch-process': 'src/network/host/watch-process.ts',
    },
    outdir: out,
    bundle: true,
    // What only some roles use stays in files that only they load.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Packages in CommonJS ask for modules of Node.js in their own way.
    banner: {
      js: "import { createRequire as packageRequire } from 'node:module'; const require = packageRequire(import.meta.url);",
    },
    minifySyntax: true,
    minifyWhitespace: true,
    // Names of classes and functions stay in stack traces, and in what people report.
    minifyIdentifiers: false,
    // A text with one byte a character takes half the memory, and is read twice as fast.
    charset: 'ascii',
    legalComments: 'none',
    external: [...BESIDE.flatMap((name) => [name, `${name}/*`]), 'supports-color'],
    plugins: [withoutModels],
    metafile: true,
    logLevel: 'warning',
  });
  checkDefaults(metafile);
  writeFileSync(join(out, 'LICENSES.txt'), licences(root, packagesOf(metafile)));
}

function checkDefaults({ outputs }: Metafile): void {
  for (const { entryPoint = '', exports } of Object.values(outputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(entryPoint)?.[1];
    const isWhole = exports.some((one) => one !== 'default');
    if (name === undefined || isWhole || name === FOR_EFFECT || BY_DEFAULT.includes(name)) continue;
    throw new Error(`import('${name}') has default only: take that, and add the package to BY_DEFAULT`);
  }
}

/** Where the packages are whose code is in the program. */
const packagesOf = ({ outputs }: Metafile): string[] => {
  const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
  // What a plug-in wrote has its name before the path.
  const names = inputs.flatMap(
    (path) => /^(?:\w+:)?(.*node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].toSorted();
};

/** Most licences ask that their text goes with each copy. */
function licences(root: string, packages: readonly string[]): string {
  // A package may be there twice, once by a path that a plug-in gave.
  const texts = new Map<string, string>();
  for (const path of packages) {
    const { name, version, license } = JSON.parse(
      readFileSync(resolve(root, path, 'package.json'), 'utf8'),
    ) as Record<'name' | 'version' | 'license', string>;
    const files = globSync(resolve(root, path, '{LICEN[CS]E,NOTICE,licen[cs]e}*'));
    const head = `${name} ${version} (${license})`;
    texts.set(head, [head, ...files.map((file) => readFileSync(file, 'utf8').trim())].join('\n\n'));
  }
  return [...texts.values()].join(`\n\n${'-'.repeat(80)}\n\n`);
}

if (import.meta.main) {
  const root = process.argv[2] ?? join(import.meta.dirname, '..');
  if (!existsSync(join(root, 'src/main.ts'))) throw new Error(`${root} has no src/main.ts`);
  await buildProgram(root);
}
