/** Waits until a pod could run in a foreign cluster: until a virtual node that stands for it is Ready, and takes pods. */
import { LABEL_PROVIDER } from '../../api/names.ts';
import { nodes } from '../../api/resources.ts';
import { hardTaints } from '../../api/taints.ts';
import {
  closedCondition,
  VIRTUAL_NODE_CONDITIONS,
  type VirtualNode,
  virtualNodes,
} from '../../api/virtual-node.ts';
import type { Node } from '../../api/wire.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { unended } from '../../lib/unended.ts';
import { EXIT } from '../command-line.ts';
import type { Session } from './environment.ts';
import { followObject } from './foreign-clusters.ts';

interface Waiting {
  clusterID: string;
  /** On the monotonic clock. */
  untilMs: number;
  /** Told what is waited for, as often as it is looked at. */
  shown: (line: string) => void;
}

/** Returns the exit code, having said which node is Ready, or why none is. */
export async function waitForNode({ clusterID, untilMs, shown }: Waiting, session: Session): Promise<number> {
  const { client, io, signal } = session;
  const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
  let last = '';
  const found = await followObject(session, {
    untilMs,
    read: async () => {
      const { items } = await client.list(virtualNodes, { labelSelector, signal });
      const ready = items.find((one) => readyOf(one)?.status === 'True');
      return { items, ready, taint: ready && (await taintOf(nameOf(ready), session)) };
    },
    look: ({ items, ready, taint }) => {
      if (ready !== undefined && taint === undefined) return ready;
      last = ready === undefined ? waitsFor(items[0]) : `${nameOf(ready)}: ${taint}`;
      shown(`virtual node: ${last}`);
      return undefined;
    },
  });
  if (found === undefined) {
    io.err(
      `The peering is agreed on, but no virtual node became Ready in time: ${unended(last)}. To see why: kubectl get virtualnodes,pods -A\n`,
    );
    return EXIT.failed;
  }
  const closed = closedCondition(found);
  const but = closed === undefined ? '' : `, but ${closed.message}`;
  io.out(`Virtual node ${nameOf(found)} is Ready${but}\n`);
  return EXIT.ok;
}

/**
 * Kubernetes taints a new node until its controller has seen that it is Ready. A pod that is placed in that moment stays at home.
 * Undefined: pods are let in, or nobody here may read nodes.
 */
async function taintOf(name: string, { client, signal }: Session): Promise<string | undefined> {
  let node: Node | undefined;
  try {
    node = await client.get(nodes, { name }, { signal }).catch(ignoring('NotFound'));
  } catch (error) {
    if (hasCode(error, 'Forbidden')) return undefined;
    throw error;
  }
  if (node === undefined) return 'its node is not there yet';
  const taint = hardTaints(node.spec?.taints).find(({ key }) => key.startsWith(OF_KUBERNETES));
  return taint && `the taint ${taint.key} keeps pods away`;
}

const OF_KUBERNETES = 'node.kubernetes.io/';

const nameOf = ({ metadata, status }: VirtualNode): string => status?.nodeName ?? metadata.name;

const waitsFor = (virtualNode: VirtualNode | undefined): string =>
  virtualNode === undefined
    ? 'no VirtualNode has been made yet'
    : `${virtualNode.metadata.name}: ${readyOf(virtualNode)?.message ?? 'its agent starts'}`;

const readyOf = ({ status }: VirtualNode): { status: string; message?: string } | undefined =>
  status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready);
