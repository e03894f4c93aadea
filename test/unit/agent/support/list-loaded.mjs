// Loaded with --import: writes the address of each module that was loaded to standard error when the process ends.
import { registerHooks } from 'node:module';

const loaded = new Set();
registerHooks({
  load: (url, context, next) => {
    loaded.add(url);
    return next(url, context);
  },
});
process.on('exit', () => {
  // Also what Node.js itself consists of: `NativeModule internal/deps/undici/undici`.
  process.stderr.write([...loaded, ...process.moduleLoadList, ''].join('\n'));
});
