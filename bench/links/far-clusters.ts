/**
 * Clusters that borrow from one, each with an identity and a link of its own: what a lender sees of its consumers. The first argument is
 * FarClusters; it prints `ready` when all have an active peering, and runs until it is ended.
 */
import { contractText, draftContract } from '../../src/peering/contract.ts';
import type { DocumentChanges } from '../../src/peering/protocol/documents.ts';
import { PeeringNode } from '../../test/support/peering/peering-node.ts';

export interface FarClusters {
  /** Names of the clusters. */
  readonly names: readonly string[];
  /** ClusterID of the lender. */
  readonly lender: string;
  /** Its `host:port`. */
  readonly endpoint: string;
}

/** One namespace each. */
const NAMESPACES = ['shop'];

const { names, lender, endpoint } = JSON.parse(process.argv[2] ?? '') as FarClusters;

/** Asks for all that is offered, and signs what it is offered. */
async function borrow(clusterName: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const node = new PeeringNode();
  const request = { clusterName, namespaces: NAMESPACES };
  node.says.set(lender, { request });
  node.onHeard = ({ offer, grant }: DocumentChanges): void => {
    if (offer !== undefined && offer !== null) {
      const text = contractText(draftContract(offer.offer, offer.offer.resources, Date.now()));
      const acceptance = { text, signature: node.identity.sign('contract', text) };
      node.says.set(lender, { request, acceptance });
      node.registry.publish(lender);
    }
    if (grant?.state === 'Active') resolve();
  };
  await node.start();
  node.registry.setTargets([{ name: 'lender', clusterID: lender, endpoints: [endpoint] }]);
  await promise;
}

await Promise.all(names.map(borrow));
process.stdout.write('ready\n');
