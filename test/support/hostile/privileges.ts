import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import { direct, fromHome, secured, SECURITY, volume } from './pod-rows.ts';
import { HOME_POD_UID, MARKS, type HostileRow } from './row.ts';

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
  fromHome('sysctls', "the node's settings", SECURITY, {
    securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] },
  }),
  fromHome('seccomp', 'all system calls', SECURITY, {
    securityContext: { seccompProfile: { type: 'Unconfined' } },
  }),
  fromHome('init-seccomp', 'all system calls, by a container that nobody looks at', SECURITY, {
    initContainers: [
      {
        name: 'init',
        image: 'example/none:1',
        securityContext: { seccompProfile: { type: 'Unconfined' } },
      },
    ],
  }),
  fromHome('app-armor', 'no AppArmor', SECURITY, {}, secured({ appArmorProfile: { type: 'Unconfined' } })),
  fromHome('app-armor-of-all', 'no AppArmor, for all containers', SECURITY, {
    securityContext: { appArmorProfile: { type: 'Unconfined' } },
  }),
  direct(
    'app-armor-annotation',
    'no AppArmor, by the older way to say it',
    SECURITY,
    { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } },
    {
      metadata: {
        name: 'hostile-app-armor-annotation',
        labels: { ...MARKS, [LABEL_HOME_UID]: HOME_POD_UID },
        annotations: { 'container.apparmor.security.beta.kubernetes.io/main': 'unconfined' },
      },
    },
  ),
  fromHome('se-linux', 'a label of SELinux', SECURITY, {
    securityContext: { seLinuxOptions: { type: 'spc_t' } },
  }),
  fromHome('se-linux-user', 'a user of SELinux', SECURITY, {}, secured({ seLinuxOptions: { user: 'root' } })),
  fromHome(
    'se-linux-role',
    'a role of SELinux',
    SECURITY,
    {},
    secured({ seLinuxOptions: { role: 'sysadm_r' } }),
  ),
];
