import { join } from 'node:path';

import type { ClusterPki } from '../cluster-pki.ts';

const ENFORCER = join(import.meta.dirname, 'main.ts');

interface EngineOptions {
  readonly server: string;
  readonly pki: ClusterPki;
  readonly node: string;
}

/**
 * The program that enforces network policies on a node, in the node's network namespace: the lab's own, or kube-router where
 * `$TRIBUTARY_BIN_KUBE_ROUTER` names its file.
 */
export function policyEngine(
  { server, pki, node }: EngineOptions,
  kubeRouter: string | undefined = process.env['TRIBUTARY_BIN_KUBE_ROUTER'],
): [string, ...string[]] {
  if (!kubeRouter) return [process.execPath, ENFORCER, server, pki.directory, node];
  return [
    // It ends where the node has no address yet; a DaemonSet would start it again.
    'sh',
    '-c',
    'while :; do "$0" "$@"; sleep 1; done',
    kubeRouter,
    '--run-firewall=true',
    '--run-router=false',
    '--run-service-proxy=false',
    '--run-loadbalancer=false',
    `--kubeconfig=${pki.file('admin.kubeconfig')}`,
    `--hostname-override=${node}`,
    '--health-port=0',
    '--metrics-port=0',
  ];
}
