/**
 * What pods of peers may not be on a node. Pod Security says most of this, too; but it can be switched off, its exemptions go by
 * names of namespaces, and a label of the namespace is all that holds it.
 */
import { ANNOTATION_IMAGE_PULL_POLICY, ANNOTATION_POD_SECURITY } from '../annotations.ts';
import { celList, eachContainer, saidOn, unless, type Validations } from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/** Of the level `baseline` (Pod Security Standards): what a container runtime gives anyway. */
const CAPABILITIES = (
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP ' +
  'SETUID SYS_CHROOT'
).split(' ');

const at = ['Create', 'Debug'] as const;

const HOST_PROCESS = 'securityContext.?windowsOptions.?hostProcess.orValue(false)';

const unlessLifted = (validations: Validations): Validations =>
  unless('variables.isLifted', validations).map(({ message = '', ...rest }) => ({
    ...rest,
    message: `${message} (podSecurity of the SharingPolicy; only the level privileged lifts this)`,
  }));

export const privilegeBounds: PodBounds = {
  at,
  variables: { isLifted: `${saidOn(ANNOTATION_POD_SECURITY)} == 'privileged'` },
  validations: unlessLifted([
    {
      expression: eachContainer('!c.?securityContext.?privileged.orValue(false)'),
      message: 'containers of peers are not privileged',
    },
    {
      expression: ['hostNetwork', 'hostPID', 'hostIPC']
        .map((field) => `!object.spec.?${field}.orValue(false)`)
        .join(' && '),
      message: 'pods of peers share no namespace with their node: no hostNetwork, hostPID, hostIPC',
    },
    {
      expression: eachContainer(
        `c.?securityContext.?capabilities.?add.orValue([]).all(a, a in ${celList(CAPABILITIES)})`,
      ),
      message: `containers of peers add no capabilities but ${CAPABILITIES.join(', ')}`,
    },
    {
      expression: eachContainer(
        "c.?securityContext.?procMount.orValue('') in ['', 'Default'] && " +
          'c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)',
      ),
      message: 'containers of peers have a masked /proc and no ports of their node',
    },
    {
      expression: `!object.spec.?${HOST_PROCESS} && ${eachContainer(`!c.?${HOST_PROCESS}`)}`,
      message: 'pods of peers are no processes of their node (HostProcess)',
    },
  ]),
};

/** CEL: a container that was put into the pod earlier, and cannot change. */
const wasThere =
  'oldObject != null && oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name)';

/**
 * With `Never` or `IfNotPresent`, a pod runs any image that is on its node, also a private one that only somebody else has
 * credentials for. Our webhook writes `Always` into each pod (guests/placement.ts).
 */
export const imageBounds: PodBounds = {
  at,
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
