/**
 * Dynamic volumes: rancher/local-path-provisioner with a class of folders of each node and a class of folders that all
 * nodes of the cluster share. Nodes of a lab see the files of the machine, so the folders lie in the lab's own data
 * and go with it.
 */
import { join } from 'node:path';

import type { KubeObject } from './kube-api.ts';
import {
  clusterRole,
  clusterRoleBinding,
  deployment,
  meta,
  NAMESPACE,
  RESTRICTED,
  rule,
  serviceAccount,
} from './manifests.ts';
import type { ClusterSpec, LabSpec } from './spec.ts';

/** A volume stays on the node where its first pod ran. */
export const LOCAL_CLASS = 'local-path';
/** A volume is on all nodes of its cluster: what a shared file system is elsewhere. */
export const SHARED_CLASS = 'shared';

const PROVISIONER = 'lab.local/local-path';
const NAME = 'local-path-provisioner';
const CONFIGURATION = '/etc/local-path';
/** The provisioner looks each second, and gives up then. */
const COMMAND_TIMEOUT_SECONDS = 60;

const SETUP = `#!/bin/sh
set -eu
mkdir -m 0777 -p "$VOL_DIR"
`;
const TEARDOWN = `#!/bin/sh
set -eu
rm -rf "$VOL_DIR"
`;

/** Folders of the machine in which a cluster's volumes lie. */
export function volumeFolders(
  lab: Pick<LabSpec, 'dataDirectory'>,
  cluster: ClusterSpec,
): { readonly ofNodes: ReadonlyMap<string, string>; readonly shared: string } {
  return {
    ofNodes: new Map(cluster.nodes.map(({ name }) => [name, join(lab.dataDirectory, name, 'volumes')])),
    shared: join(lab.dataDirectory, cluster.name, 'volumes'),
  };
}

/** The provisioner and both classes; needs lab.local/local-path-provisioner:1 and lab.local/busybox:1 on every node. */
export function localPathProvisioner(
  lab: Pick<LabSpec, 'dataDirectory'>,
  cluster: ClusterSpec,
): KubeObject[] {
  const all = ['get', 'list', 'watch', 'create', 'patch', 'update', 'delete'];
  const read = ['get', 'list', 'watch'];
  return [
    serviceAccount(NAME),
    clusterRole(NAME, [
      rule([''], ['nodes', 'persistentvolumeclaims', 'configmaps', 'pods/log'], read),
      rule([''], ['persistentvolumes', 'pods'], all),
      rule([''], ['events'], ['create', 'patch']),
      rule(['storage.k8s.io'], ['storageclasses'], read),
    ]),
    clusterRoleBinding(NAME, NAME, NAME),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: meta(NAME),
      data: {
        'config.json': JSON.stringify(configuration(lab, cluster), undefined, 2),
        'helperPod.yaml': JSON.stringify(helperPod(cluster), undefined, 2),
        setup: SETUP,
        teardown: TEARDOWN,
      },
    },
    deployment(NAME, { app: NAME }, podSpec(cluster)),
    storageClass(LOCAL_CLASS),
    storageClass(SHARED_CLASS),
  ];
}

function configuration(lab: Pick<LabSpec, 'dataDirectory'>, cluster: ClusterSpec): object {
  const folders = volumeFolders(lab, cluster);
  const nodePathMap = [...folders.ofNodes].map(([node, path]) => ({ node, paths: [path] }));
  return {
    cmdTimeoutSeconds: COMMAND_TIMEOUT_SECONDS,
    storageClassConfigs: {
      [LOCAL_CLASS]: { nodePathMap },
      [SHARED_CLASS]: { sharedFileSystemPath: folders.shared },
    },
  };
}

/** It makes and removes one folder, as root on a real node: the provisioner itself tolerates every taint for it. */
function helperPod(cluster: ClusterSpec): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'helper-pod' },
    spec: {
      priorityClassName: 'system-node-critical',
      terminationGracePeriodSeconds: 0,
      affinity: onRealNodes(cluster),
      containers: [{ name: 'helper-pod', image: 'lab.local/busybox:1', imagePullPolicy: 'Never' }],
    },
  };
}

function podSpec(cluster: ClusterSpec): Record<string, unknown> {
  return {
    serviceAccountName: NAME,
    affinity: onRealNodes(cluster),
    containers: [
      {
        name: NAME,
        image: `lab.local/${NAME}:1`,
        imagePullPolicy: 'Never',
        args: [
          'start',
          '--config',
          `${CONFIGURATION}/config.json`,
          '--provisioner-name',
          PROVISIONER,
          '--namespace',
          NAMESPACE,
          '--service-account-name',
          NAME,
          '--configmap-name',
          NAME,
          '--helper-pod-file',
          `${CONFIGURATION}/helperPod.yaml`,
        ],
        securityContext: { ...RESTRICTED, capabilities: { drop: ['ALL'] } },
        volumeMounts: [{ name: 'config', mountPath: CONFIGURATION, readOnly: true }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: NAME } }],
  };
}

/** By name: whatever other nodes may join the cluster, only these see the folders. */
function onRealNodes({ nodes }: ClusterSpec): object {
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        // A field takes one value; terms are alternatives.
        nodeSelectorTerms: nodes.map(({ name }) => ({
          matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }],
        })),
      },
    },
  };
}

function storageClass(name: string): KubeObject {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: PROVISIONER,
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  };
}
