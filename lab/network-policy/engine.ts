import { join } from 'node:path';

const ENFORCER = join(import.meta.dirname, 'main.ts');

interface EngineOptions {
  readonly server: string;
  readonly pkiDirectory: string;
  /** Of an administrator. */
  readonly kubeconfig: string;
  readonly node: string;
}

/**
 * The program that enforces network policies on a node, in the node's network namespace: the lab's own, or kube-router where
 * `$TRIBUTARY_BIN_KUBE_ROUTER` names its file.
 */
export function policyEngine(
  { server, pkiDirectory, kubeconfig, node }: EngineOptions,
  kubeRouter: string | undefined = process.env['TRIBUTARY_BIN_KUBE_ROUTER'],
): [string, ...string[]] {
  if (!kubeRouter) return [process.execPath, ENFORCER, server, pkiDirectory, node];
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
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${node}`,
    '--health-port=0',
    '--metrics-port=0',
  ];
}
