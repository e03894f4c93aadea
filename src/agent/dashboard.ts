/** The dashboard of the role `cluster`: the facts of its caches, people with their own tokens, and the listener. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { Board, type BoardOptions } from '../dashboard/board.ts';
import { Visitor } from '../dashboard/visitor.ts';
import type { Credentials } from '../kube/credentials.ts';
import { createClient } from '../kube/http-client.ts';
import type { Component } from '../lib/lifecycle.ts';
import { present } from '../lib/fields.ts';
import { DashboardServer } from '../server/dashboard/server.ts';
import type { AgentParts } from './parts.ts';

interface DashboardOptions extends Pick<BoardOptions, 'caches' | 'pods'> {
  parts: AgentParts;
  identity: { clusterID: string };
  /** Where the API server is; nothing of our own account is taken from them. */
  credentials: Pick<Credentials, 'server' | 'ca' | 'tlsServerName'>;
}

/** Built by `npm run build`: beside the built program, or where that would be if the sources run. */
const BUILT_PAGE = join(import.meta.dirname, 'page');
const PAGE = existsSync(BUILT_PAGE) ? BUILT_PAGE : join(import.meta.dirname, '../../dist/page');

/** In the order of their start; none where it is switched off. */
export function dashboard({ parts, credentials, identity, caches, pods }: DashboardOptions): Component[] {
  const { config, clock } = parts;
  if (!config.dashboard) return [];
  const log = parts.log.named('dashboard');
  const own = { clusterID: identity.clusterID, clusterName: config.clusterName };
  const board = new Board({ caches, pods, own, clock });
  const { server, ca, tlsServerName } = credentials;
  return [
    board,
    new DashboardServer({
      clock,
      log,
      port: config.dashboardPort,
      pageDirectory: PAGE,
      signIn: async (token) => {
        const theirs = {
          server,
          ...present({ ca, tlsServerName }),
          token: async () => Promise.resolve(token),
        };
        const client = createClient(theirs, { clock });
        try {
          return await Visitor.signedIn(token, { client, board, clock, log });
        } catch (error) {
          await client.close();
          throw error;
        }
      },
    }),
  ];
}
