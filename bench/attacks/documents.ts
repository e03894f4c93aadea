import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import type { NetworkDocument } from '../../src/api/peer-documents.ts';
import type { Attack, Counts } from './attack.ts';
import type { AttackBed } from './bed.ts';
import type { Borrower } from './borrower.ts';

const PAUSE_MS = 20;
const PREFIXES = 200;
const NAMES = 60;

/** A peer with a contract that changes each of its documents, and so its PeeringRequest and its Tunnel, without end. */
export class DocumentsAttack implements Attack {
  readonly name = 'documents';
  readonly what =
    'a peer with a contract changes its request and its network, as often as its link takes them';
  readonly #counts = { changes: 0 };
  #borrower: Borrower | undefined;

  async prepare(bed: AttackBed): Promise<void> {
    await bed.policy();
    this.#borrower = await bed.borrower('rome');
    await this.#borrower.peered();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const turn = this.#counts.changes++;
      const names = Array.from({ length: NAMES }, (_, at) => `${'n'.repeat(40)}-${at}-${turn}`);
      const request = { clusterName: 'rome', namespaces: ['shop', ...names] };
      this.#borrower?.say({ request, network: networkOf(turn) });
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  async stop(): Promise<void> {
    await Promise.resolve();
  }
}

const networkOf = (turn: number): NetworkDocument => ({
  publicKey: randomBytes(32).toString('base64'),
  endpoints: [`203.0.113.${turn % 250}:51820`],
  pods: Array.from({ length: PREFIXES }, (_, at) => `10.${(at + turn) % 250}.${at}.0/24`),
  external: [],
  transit: [],
  views: [],
});
