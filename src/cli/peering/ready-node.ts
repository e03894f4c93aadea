/** Waits until a pod could run in a foreign cluster: until a virtual node that stands for it is Ready. */
import { LABEL_PROVIDER } from '../../api/names.ts';
import { VIRTUAL_NODE_CONDITIONS, type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
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
  let last = 'no VirtualNode has been made yet';
  const node = await followObject(session, {
    untilMs,
    read: async () => (await client.list(virtualNodes, { labelSelector, signal })).items,
    look: (nodes) => {
      const ready = nodes.find((one) => readyOf(one)?.status === 'True');
      if (ready !== undefined) return ready;
      const [first] = nodes;
      if (first !== undefined)
        last = `${first.metadata.name}: ${readyOf(first)?.message ?? 'its agent starts'}`;
      shown(`virtual node: ${last}`);
      return undefined;
    },
  });
  if (node === undefined) {
    io.err(`Agreed, but no virtual node is Ready in time: ${last}. See: kubectl get virtualnodes,pods -A\n`);
    return EXIT.failed;
  }
  io.out(`Virtual node ${node.status?.nodeName ?? node.metadata.name} is Ready\n`);
  return EXIT.ok;
}

const readyOf = ({ status }: VirtualNode): { status: string; message?: string } | undefined =>
  status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready);
