import { LABEL_HOME_UID, LABEL_MANAGED_BY, ANNOTATION_APPLIED } from '../../../../src/api/names.ts';
import type { Pod, PodSpec, PodStatus } from '../../../../src/api/wire.ts';
import { appliedOf } from '../../../../src/provider/forge/applied.ts';
import type { ForgeContext } from '../../../../src/provider/forge/context.ts';
import type { Situation } from '../../../../src/provider/pods/decide.ts';

/** Objects that the tables of this folder begin with. */

export const NOW = '2026-01-01T00:00:00Z';
export const UID = '00000000-0000-4000-8000-000000000001';

export const CONTEXT: ForgeContext = {
  virtualNode: 'rome',
  nodeName: 'rome',
  nodeAddress: '192.0.2.1',
  tenantNamespace: 'tenant',
  network: 'Off',
  homeViewOf: (address) => address,
};

export const RUNNING: PodStatus = {
  phase: 'Running',
  startTime: NOW,
  hostIP: '203.0.113.9',
  podIP: '10.0.0.7',
  podIPs: [{ ip: '10.0.0.7' }],
  conditions: [
    { type: 'PodScheduled', status: 'True', lastTransitionTime: NOW },
    { type: 'Ready', status: 'True', lastTransitionTime: NOW },
  ],
};

interface PodParts {
  metadata?: Partial<Pod['metadata']>;
  spec?: Partial<PodSpec>;
  status?: PodStatus;
}

export function homePod({ metadata, spec, status }: PodParts = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'shop',
      uid: UID,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: NOW,
      ...metadata,
    },
    spec: {
      nodeName: 'rome',
      restartPolicy: 'Always',
      containers: [{ name: 'main', image: 'web:1' }],
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** The body of `home`, as the agent made it. */
export function remotePod(home: Pod, { metadata, spec, status }: PodParts = {}): Pod {
  const { nodeName: _node, ...travelled } = home.spec ?? { containers: [] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: home.metadata.name,
      namespace: 'tenant',
      uid: 'remote-uid',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: NOW,
      labels: { [LABEL_HOME_UID]: home.metadata.uid, [LABEL_MANAGED_BY]: 'rome' },
      annotations: { [ANNOTATION_APPLIED]: JSON.stringify(appliedOf(home)) },
      ...metadata,
    },
    spec: { ...travelled, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

export function situation(parts: Partial<Situation>): Situation {
  return {
    home: undefined,
    remote: undefined,
    node: { virtualNode: 'rome', cluster: 'milan', isPeered: true },
    context: CONTEXT,
    accepting: true,
    kept: false,
    contact: true,
    references: { missing: [], refused: [], pending: false, notes: [] },
    held: false,
    now: NOW,
    ...parts,
  };
}
