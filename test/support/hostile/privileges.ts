import { fromHome, secured, SECURITY, volume } from './pod-rows.ts';
import type { HostileRow } from './row.ts';

/** The node itself; the admission policies refuse these without Pod Security, too. */
export const HOSTILE_PRIVILEGES: readonly HostileRow[] = [
  fromHome('privileged', 'the node', SECURITY, {}, secured({ privileged: true })),
  fromHome('host-network', "the node's addresses", SECURITY, { hostNetwork: true }),
  fromHome('host-pid', "the node's processes", SECURITY, { hostPID: true }),
  fromHome('host-ipc', "the node's shared memory", SECURITY, { hostIPC: true }),
  fromHome('host-path', "the node's files", SECURITY, volume({ hostPath: { path: '/' } })),
  fromHome(
    'host-port',
    'a port of the node',
    SECURITY,
    {},
    { container: { ports: [{ containerPort: 80, hostPort: 80 }] } },
  ),
  fromHome(
    'capabilities',
    "the node's kernel",
    SECURITY,
    {},
    secured({ capabilities: { add: ['SYS_ADMIN'] } }),
  ),
  fromHome('init-capabilities', "the node's kernel, by a container that nobody looks at", SECURITY, {
    initContainers: [
      {
        name: 'init',
        image: 'example/none:1',
        securityContext: { capabilities: { add: ['NET_RAW', 'SYS_PTRACE'] } },
      },
    ],
  }),
];
