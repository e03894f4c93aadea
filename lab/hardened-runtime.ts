/**
 * A second containerd handler beside `runc`, as a lender may want it for the pods of others. It starts from a base
 * specification of its own, whose settings containerd keeps: a pod can tell that it runs under it.
 */
import type { KubeObject } from './kube-api.ts';
import { run } from './run.ts';

/** Name of the handler and of its RuntimeClass. */
export const HARDENED_HANDLER = 'hardened';
/** `ulimit -n` in a container of it; elsewhere it is what containerd itself was given. */
export const HARDENED_OPEN_FILES = 999;
/** In the environment of every container of it. */
export const HARDENED_MARK = 'LAB_RUNTIME=hardened';

/** System calls that a container without the capabilities for them does not need; keys belong to the whole machine. */
const REFUSED_CALLS = ['add_key', 'bpf', 'keyctl', 'perf_event_open', 'ptrace', 'request_key', 'unshare'];

interface RuntimeSpec {
  readonly process?: Readonly<Record<string, unknown>> & { readonly env?: readonly string[] };
  readonly linux?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** The OCI runtime specification that containers of the handler start from; containerd's own is the beginning. */
export async function hardenedSpec(): Promise<string> {
  return JSON.stringify(harden(JSON.parse(await run(['ctr', 'oci', 'spec'])) as RuntimeSpec), undefined, 2);
}

/**
 * It sets few open files, a filter of system calls (unless the pod names its own profile) and a mark, and nothing
 * else: containerd sets everything in the pod's security context, such as new privileges, from that context alone.
 */
export function harden(spec: RuntimeSpec): RuntimeSpec {
  const limit = HARDENED_OPEN_FILES;
  return {
    ...spec,
    process: {
      ...spec.process,
      env: [...(spec.process?.env ?? []), HARDENED_MARK],
      rlimits: [{ type: 'RLIMIT_NOFILE', hard: limit, soft: limit }],
    },
    linux: {
      ...spec.linux,
      seccomp: {
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: REFUSED_CALLS, action: 'SCMP_ACT_ERRNO' }],
      },
    },
  };
}

export const hardenedRuntimeClass = (): KubeObject => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: HARDENED_HANDLER },
  handler: HARDENED_HANDLER,
});
