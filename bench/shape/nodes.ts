/** Nodes as a cloud has them, and the kubelets that write about them: their heartbeats, and some that come and go. */
import { setTimeout as sleep } from 'node:timers/promises';

import { timestamp } from '../../src/api/conditions.ts';
import { nodes } from '../../src/api/resources.ts';
import type { DraftMeta, Node, NodeCondition } from '../../src/api/wire.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { eachAtOnce } from '../../src/lib/each-at-once.ts';

const AT_ONCE = 16;
const IMAGES = 30;
/** Kinds of machines, one after the other: CPUs and GiB. */
const SIZES = [
  [4, 16],
  [8, 32],
  [16, 64],
] as const;
const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

const NODE_INFO = {
  architecture: 'amd64',
  operatingSystem: 'linux',
  kubeletVersion: 'v1.36.3',
  bootID: '',
  containerRuntimeVersion: 'containerd://2.1.0',
  kernelVersion: '6.12.0',
  kubeProxyVersion: '',
  machineID: '',
  osImage: 'an image',
  systemUUID: '',
};

export const nodeNameOf = (index: number): string => `machine-${String(index).padStart(4, '0')}`;

/** A kubelet registers a node together with its status. */
type NewNode = Omit<Node, 'metadata'> & { metadata: DraftMeta };

/** Of everyday size: some 10 KB, most of it images. */
export function machine(index: number): NewNode {
  const name = nodeNameOf(index);
  const [cpu, gib] = SIZES[index % SIZES.length] ?? SIZES[0];
  const amounts = { cpu: String(cpu), memory: `${gib}Gi`, 'ephemeral-storage': '100Gi', pods: '110' };
  const at = timestamp(Date.now());
  const condition = (type: string, status: string): NodeCondition => ({
    type,
    status,
    reason: 'Pretended',
    message: 'a kubelet would say more here',
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  });
  return {
    metadata: {
      name,
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/hostname': name,
        'node.kubernetes.io/instance-type': `general-${cpu}`,
        'topology.kubernetes.io/region': 'north',
        'topology.kubernetes.io/zone': `north-${index % 3}`,
      },
    },
    spec: { podCIDR: `10.${128 + (index >> 8)}.${index & 255}.0/24` },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [...PRESSURES.map((type) => condition(type, 'False')), condition('Ready', 'True')],
      addresses: [{ type: 'InternalIP', address: `10.9.${index >> 8}.${index & 255}` }],
      nodeInfo: NODE_INFO,
      images: Array.from({ length: IMAGES }, (_none, image) => ({
        names: [imageName(image, `@sha256:${String(image).padStart(64, 'a')}`), imageName(image, ':v1.2.3')],
        sizeBytes: 10_000_000 + image,
      })),
    },
  };
}

const imageName = (image: number, version: string): string =>
  `registry.example.org/shop/service-${image}${version}`;

/** Those from `from` on, as kubelets would register them, and at once without the taint of a node that is new. */
export async function addMachines(client: HttpClient, from: number, to: number): Promise<void> {
  const further = Array.from({ length: to - from }, (_none, index) => from + index);
  await eachAtOnce(further, AT_ONCE, async (index) => {
    await client.create(nodes, machine(index));
    const body = { spec: { taints: null } };
    await client.patch(nodes, { name: nodeNameOf(index) }, { type: 'merge', body });
  });
}

export interface Written {
  heartbeats: number;
  flaps: number;
}

/** The first nodes, whose Ready comes and goes; they send no other heartbeats. */
const FLAPPING = 3;

/**
 * All kubelets for that time: each node's status every so many seconds, evenly spread; and some nodes lose their Ready and
 * have it again, one at a time. In the end all have it.
 */
export async function kubelets(
  client: HttpClient,
  {
    count,
    heartbeatMs,
    flapMs,
    forMs,
  }: { count: number; heartbeatMs: number; flapMs: number; forMs: number },
): Promise<Written> {
  const end = performance.now() + forMs;
  const written: Written = { heartbeats: 0, flaps: 0 };
  const flapping = Math.min(FLAPPING, Math.ceil(count / 2));
  const beating = Math.max(1, count - flapping);
  const beats = paced(heartbeatMs / count, end, async (turn) => {
    await writeReady(client, Math.min(count - 1, flapping + (turn % beating)), 'True');
    written.heartbeats++;
  });
  const flaps = paced(flapMs, end, async (turn) => {
    await writeReady(client, Math.floor(turn / 2) % flapping, turn % 2 === 0 ? 'False' : 'True');
    written.flaps++;
  });
  await Promise.all([beats, flaps]);
  for (let index = 0; index < flapping; index++) await writeReady(client, index, 'True');
  return written;
}

/** As a kubelet patches its status. */
async function writeReady(client: HttpClient, index: number, status: 'True' | 'False'): Promise<void> {
  const lastHeartbeatTime = timestamp(Date.now());
  const body = { status: { conditions: [{ type: 'Ready', status, lastHeartbeatTime }] } };
  const ref = { name: nodeNameOf(index) };
  await client.patch(nodes, ref, { type: 'strategic', body }, { subresource: 'status' });
}

/** Infinity: never. */
async function paced(everyMs: number, end: number, work: (turn: number) => Promise<void>): Promise<void> {
  const began = performance.now();
  for (let turn = 0; ; turn++) {
    const due = began + (turn + 1) * everyMs;
    await sleep(Math.max(0, Math.min(due, end) - performance.now()));
    if (due >= end) return;
    await work(turn);
  }
}
