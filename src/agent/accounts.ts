/** Role `all` in a pod: one process, in which each part acts under the account that it has as a process of its own. */
import type { AccountRef } from '../api/rbac.ts';
import { accountToken } from '../kube/account-token.ts';
import { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Credentials } from '../kube/credentials.ts';
import { createClient } from '../kube/http-client.ts';
import type { Basics } from '../lib/basics.ts';

/** What one account sees and does at our own API server. */
export interface Access {
  home: KubeClient;
  caches: Caches;
}

/** Opens an access; whoever has opened it closes the client. */
export type OpenAccess = (account: AccountRef) => Access;

interface AccessOptions extends Basics {
  /** Of the pod. */
  credentials: Credentials;
  /** Asks for the tokens. */
  home: KubeClient;
}

export const accessAs =
  ({ credentials, home, clock, log }: AccessOptions): OpenAccess =>
  (account) => {
    const client = createClient({ ...credentials, token: accountToken(home, account, clock) }, { clock });
    return { home: client, caches: new Caches({ client, clock, log: log.named(account.name) }) };
  };
