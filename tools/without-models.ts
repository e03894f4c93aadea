/** An esbuild plug-in. */
import { dirname, join } from 'node:path';
import type { Plugin } from 'esbuild';

/** Of client-node only what reads a kubeconfig: it has 900 classes, one for each shape in the API of Kubernetes, which are parsed at each start. */
export const withoutModels: Plugin = {
  name: 'without-models',
  setup: (building) => {
    building.onResolve({ filter: /^@kubernetes\/client-node$/ }, async ({ kind, resolveDir, pluginData }) => {
      if (pluginData === 'whole') return undefined;
      const whole = await building.resolve('@kubernetes/client-node', {
        kind,
        resolveDir,
        pluginData: 'whole',
      });
      return { path: join(dirname(whole.path), 'config.js') };
    });
    building.onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ importer, resolveDir }) =>
      importer.endsWith(join('client-node', 'dist', 'config.js'))
        ? { path: join(resolveDir, 'gen'), namespace: 'parts' }
        : undefined,
    );
    building.onLoad({ filter: /.*/, namespace: 'parts' }, ({ path }) => ({
      resolveDir: path,
      contents: `export { createConfiguration } from './configuration.js';
        export { ServerConfiguration } from './servers.js';`,
    }));
  },
};
