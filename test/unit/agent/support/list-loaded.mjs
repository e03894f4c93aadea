// Loaded with --import: writes the address of each module to standard error when the process ends.
import { registerHooks } from 'node:module';

const loaded = new Set();
registerHooks({
  load: (url, context, next) => {
    loaded.add(url);
    return next(url, context);
  },
});
process.on('exit', () => process.stderr.write([...loaded, ''].join('\n')));
