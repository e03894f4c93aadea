/** The program for people as one file without dependencies. */
import { join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

import type { BuildStamp } from '../../src/version.ts';
import { withoutModels } from '../without-models.ts';

/** The oldest Node.js that runs it. */
export const OLDEST_NODE = 22;

const IMAGE_ONLY = join(import.meta.dirname, 'image-only.ts');

/** Roles and the host's network stay in the image: they need native code, nft, wg, and a program beside them. */
const imageOnly: Plugin = {
  name: 'image-only',
  setup: (building) => {
    building.onResolve({ filter: /\/(?:agent\/roles|network\/host\/host)\.ts$/ }, ({ kind, importer }) =>
      kind === 'dynamic-import' && importer.includes('/src/cli/') ? { path: IMAGE_ONLY } : undefined,
    );
  },
};

export interface Bundle {
  readonly text: string;
  /** Which files it is made of. */
  readonly inputs: readonly string[];
}

const COMMON: BuildOptions = {
  bundle: true,
  platform: 'node',
  // Other than an ES module, it may have a name without an ending.
  format: 'cjs',
  target: `node${OLDEST_NODE}`,
  minifySyntax: true,
  minifyWhitespace: true,
  // Names of classes and functions stay in stack traces, and in what people report.
  minifyIdentifiers: false,
  // A text with one byte a character is read twice as fast.
  charset: 'ascii',
  legalComments: 'none',
  // Of the tests; a library of ours would take it where it is there.
  external: ['supports-color'],
  metafile: true,
  write: false,
  logLevel: 'silent',
};

async function built(options: BuildOptions): Promise<Bundle> {
  const { outputFiles, metafile } = await build({ ...COMMON, ...options, metafile: true, write: false });
  const text = outputFiles[0]?.text;
  if (text === undefined) throw new Error('esbuild wrote nothing');
  return { text, inputs: inputsOf(metafile) };
}

/** Half of the program, which `version` and help never call: as a string it is read 20 times faster than as code, and compiled when it is called. */
const asString = ({ text }: Bundle): string => `
  import { compileFunction } from 'node:vm';
  const module = { exports: {} };
  const names = ['module', 'exports', 'require'];
  compileFunction(${JSON.stringify(text)}, names, { filename: 'kubeconfig-of-tributary' })(module, module.exports, require);
  export const { KubeConfig } = module.exports;
`;

export async function bundle(root: string, stamp: BuildStamp): Promise<Bundle> {
  const kubeConfig = await built({
    absWorkingDir: root,
    entryPoints: ['src/cli/kube-config.ts'],
    plugins: [withoutModels],
  });
  const embedded: Plugin = {
    name: 'embedded',
    setup: (building) => {
      building.onLoad({ filter: /\/src\/cli\/kube-config\.ts$/ }, () => ({
        contents: asString(kubeConfig),
        loader: 'js',
      }));
    },
  };
  const whole = await built({
    absWorkingDir: root,
    entryPoints: ['src/main.ts'],
    define: { TRIBUTARY_BUILD: JSON.stringify(stamp) },
    plugins: [imageOnly, embedded],
  });
  return { text: whole.text, inputs: [...whole.inputs, ...kubeConfig.inputs] };
}

const inputsOf = ({ outputs }: Metafile): string[] =>
  Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
