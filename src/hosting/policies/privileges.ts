/**
 * What pods of peers may not be on a node. Pod Security says most of this, too; but it can be switched off, its exemptions go by
 * names of namespaces, and a label of the namespace is all that holds it.
 */
import { ANNOTATION_IMAGE_PULL_POLICY, ANNOTATION_POD_SECURITY } from '../annotations.ts';
import { celList, eachContainer, saidOn, unless } from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/** Of the level `baseline` (Pod Security Standards): what a container runtime gives anyway. */
const CAPABILITIES = (
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP ' +
  'SETUID SYS_CHROOT'
).split(' ');

/** Of the same level, in its newest version: those that act on the pod alone. */
const SYSCTLS = [
  'kernel.shm_rmid_forced',
  ...(
    'ip_local_port_range ip_local_reserved_ports ip_unprivileged_port_start ping_group_range tcp_fin_timeout ' +
    'tcp_keepalive_intvl tcp_keepalive_probes tcp_keepalive_time tcp_rmem tcp_syncookies tcp_wmem'
  )
    .split(' ')
    .map((name) => `net.ipv4.${name}`),
];

/** Of the same level: what SELinux runs containers as. */
const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'];

/** CEL about a security context, of a pod or of a container. */
type OfContext = (context: string) => string;

/**
 * CEL: whether a security context lifts nothing that keeps processes in. The older annotations about AppArmor need no word: an API server
 * writes them into these fields first.
 */
const isConfined: OfContext = (context) => {
  const profiles = ['seccompProfile', 'appArmorProfile'].map(
    (field) =>
      `(!has(${context}.${field}) || ${context}.${field}.?type.orValue('') in ['RuntimeDefault', 'Localhost'])`,
  );
  const { user, role, type } = Object.fromEntries(
    ['user', 'role', 'type'].map((field) => [field, `${context}.seLinuxOptions.?${field}.orValue('')`]),
  );
  const label = `${type} in ${celList(SELINUX_TYPES)} && ${user} == '' && ${role} == ''`;
  return [...profiles, `(!has(${context}.seLinuxOptions) || (${label}))`].join(' && ');
};

/** Conditions that are all to be true; of a pod, of each container `c`, and of the security contexts that they have. */
interface Rule {
  pod?: string;
  podContext?: OfContext;
  container?: string;
  context?: OfContext;
  message: string;
}

const isNoHostProcess: OfContext = (context) => `!${context}.?windowsOptions.?hostProcess.orValue(false)`;

const RULES: readonly Rule[] = [
  {
    context: (context) => `!${context}.?privileged.orValue(false)`,
    message: 'containers of peers are not privileged',
  },
  {
    pod: ['hostNetwork', 'hostPID', 'hostIPC']
      .map((field) => `!object.spec.?${field}.orValue(false)`)
      .join(' && '),
    message: 'pods of peers share no namespace with their node: no hostNetwork, hostPID, hostIPC',
  },
  {
    context: (context) => `${context}.?capabilities.?add.orValue([]).all(a, a in ${celList(CAPABILITIES)})`,
    message: `containers of peers add no capabilities but ${CAPABILITIES.join(', ')}`,
  },
  {
    context: (context) => `${context}.?procMount.orValue('') in ['', 'Default']`,
    container: '(!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))',
    message: 'containers of peers have a masked /proc and no ports of their node',
  },
  {
    podContext: isNoHostProcess,
    context: isNoHostProcess,
    message: 'pods of peers are no processes of their node (HostProcess)',
  },
  {
    podContext: isConfined,
    context: isConfined,
    message:
      'seccomp, AppArmor and SELinux hold for pods of peers: profiles are RuntimeDefault or Localhost, seLinuxOptions have no user, ' +
      `no role, and of the types ${SELINUX_TYPES.filter((type) => type !== '').join(', ')} only`,
  },
  {
    podContext: (context) =>
      `(!has(${context}.sysctls) || ${context}.sysctls.all(s, s.name in ${celList(SYSCTLS)}))`,
    message: `pods of peers set no sysctls but ${SYSCTLS.join(', ')}`,
  },
];

/** CEL: whether a pod keeps all of these rules. */
function keeps(rules: readonly Omit<Rule, 'message'>[]): string {
  const secured = (of: string, conditions: readonly OfContext[]): string[] => {
    const context = `${of}.securityContext`;
    const all = conditions.map((condition) => condition(context)).join(' && ');
    return conditions.length === 0 ? [] : [`(!has(${context}) || (${all}))`];
  };
  const containers = [
    ...rules.flatMap(({ container = [] }) => container),
    ...secured(
      'c',
      rules.flatMap(({ context = [] }) => context),
    ),
  ];
  return [
    ...rules.flatMap(({ pod = [] }) => pod),
    ...secured(
      'object.spec',
      rules.flatMap(({ podContext = [] }) => podContext),
    ),
    ...(containers.length === 0 ? [] : [eachContainer(containers.join(' && '))]),
  ].join(' && ');
}

/** All rules in one go, which nearly every pod keeps; only of one that does not, it is asked which rule that is. */
export const privilegeBounds: PodBounds = {
  at: ['Create', 'Debug'],
  variables: { isOrdinary: `${saidOn(ANNOTATION_POD_SECURITY)} == 'privileged' || (${keeps(RULES)})` },
  validations: unless(
    'variables.isOrdinary',
    RULES.map((rule) => ({
      expression: keeps([rule]),
      message: `${rule.message} (podSecurity of the SharingPolicy; only the level privileged lifts this)`,
    })),
  ),
};

/** CEL: a container that was put into the pod earlier, and cannot change. */
const wasThere =
  'oldObject != null && oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name)';

/**
 * With `Never` or `IfNotPresent`, a pod runs any image that is on its node, also a private one that only somebody else has
 * credentials for. Our webhook writes `Always` into each pod (guests/placement.ts).
 */
export const imageBounds: PodBounds = {
  at: ['Create', 'Debug'],
  variables: { isFree: `${saidOn(ANNOTATION_IMAGE_PULL_POLICY)} != 'Always'` },
  validations: [
    {
      expression:
        `variables.isFree || (${eachContainer("c.?imagePullPolicy.orValue('') == 'Always'", ['containers', 'initContainers'])} && ` +
        `object.spec.?ephemeralContainers.orValue([]).all(c, c.?imagePullPolicy.orValue('') == 'Always' || (${wasThere})) && ` +
        "object.spec.?volumes.orValue([]).all(v, !has(v.image) || v.image.?pullPolicy.orValue('') == 'Always'))",
      message:
        "images of peers' pods are pulled with the pod's own credentials: imagePullPolicy Always for each container and " +
        `volume (annotation ${ANNOTATION_IMAGE_PULL_POLICY} of the namespace, SharingPolicy imagePullPolicy); role cluster ` +
        'of the provider writes that into pods, so it may not be running',
    },
  ],
};
