/** The usual objects of an addon in kube-system, made from the few values that differ. */
import type { KubeObject } from './kube-api.ts';

export const NAMESPACE = 'kube-system';
export const RBAC = 'rbac.authorization.k8s.io/v1';
export const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** Of a container's security context. */
export const RESTRICTED = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true } as const;

export function meta(name: string): { name: string; namespace: string } {
  return { name, namespace: NAMESPACE };
}

export function serviceAccount(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta(name) };
}

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export function rule(
  apiGroups: readonly string[],
  resources: readonly string[],
  verbs: readonly string[],
): PolicyRule {
  return { apiGroups, resources, verbs };
}

export function clusterRole(name: string, rules: readonly PolicyRule[]): KubeObject {
  return { apiVersion: RBAC, kind: 'ClusterRole', metadata: { name }, rules };
}

export function clusterRoleBinding(name: string, role: string, account: string): KubeObject {
  return {
    apiVersion: RBAC,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: NAMESPACE }],
  };
}

export function deployment(
  name: string,
  labels: Readonly<Record<string, string>>,
  podSpec: Readonly<Record<string, unknown>>,
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...meta(name), labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        // Real nodes only: a virtual node must not end up running its own cluster's DNS.
        spec: {
          priorityClassName: 'system-cluster-critical',
          tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
          ...podSpec,
        },
      },
    },
  };
}
