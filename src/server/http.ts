import type http from 'node:http';

/**
 * Of `node:http`, without what importing it loads: an import reads all exports of a module, and those of this one that are made at
 * their first use bring undici and compression along, several MiB in each process.
 */
export const createServer: typeof http.createServer = process.getBuiltinModule('node:http').createServer;
