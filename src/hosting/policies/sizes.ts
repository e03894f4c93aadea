/**
 * How large pods of peers may be. The API server bounds the object as a whole (about 1.5 MB in etcd); what nodes and our
 * own controllers do with each part of it is bounded here, far above what anybody honest has.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { writes } from '../../api/fence.ts';
import { type Validations, forgeTenantAdmission } from './admission.ts';

const MOST = {
  containers: 64,
  env: 1000,
  envFrom: 100,
  ports: 250,
  mounts: 250,
  volumes: 250,
  sources: 100,
  tolerations: 64,
  hostAliases: 250,
  pullSecrets: 64,
  graceSeconds: 86_400,
  /** Of the name of an image. */
  image: 1024,
};

/** CEL: on each container of all lists. */
const each = (condition: (container: string) => string): string =>
  ['containers', 'initContainers', 'ephemeralContainers']
    .map((list) => `object.spec.?${list}.orValue([]).all(c, ${condition('c')})`)
    .join(' && ');
const size = (what: string): string => `${what}.orValue([]).size()`;
const atMost = (field: string, most: number): string => `${size(`object.spec.?${field}`)} <= ${most}`;

const validations: Validations = [
  {
    expression: ['containers', 'initContainers', 'ephemeralContainers']
      .map((list) => atMost(list, MOST.containers))
      .join(' && '),
    message: `pods of peers have ${MOST.containers} containers of each sort at most`,
  },
  {
    expression: each(
      (c) => `${size(`${c}.?env`)} <= ${MOST.env} && ${size(`${c}.?envFrom`)} <= ${MOST.envFrom}`,
    ),
    message: `containers of peers have ${MOST.env} variables and ${MOST.envFrom} sources of them at most`,
  },
  {
    expression: each(
      (c) => `${size(`${c}.?ports`)} <= ${MOST.ports} && ${size(`${c}.?volumeMounts`)} <= ${MOST.mounts}`,
    ),
    message: `containers of peers have ${MOST.ports} ports and ${MOST.mounts} mounts at most`,
  },
  {
    expression:
      `${atMost('volumes', MOST.volumes)} && ` +
      `object.spec.?volumes.orValue([]).all(v, ${size('v.?projected.?sources')} <= ${MOST.sources})`,
    message: `pods of peers have ${MOST.volumes} volumes of ${MOST.sources} projected sources at most`,
  },
  {
    expression: [
      atMost('tolerations', MOST.tolerations),
      atMost('hostAliases', MOST.hostAliases),
      atMost('imagePullSecrets', MOST.pullSecrets),
    ].join(' && '),
    message: `pods of peers have ${MOST.tolerations} tolerations, ${MOST.hostAliases} hostAliases and ${MOST.pullSecrets} imagePullSecrets at most`,
  },
  {
    expression: each((c) => `${c}.?image.orValue('').size() <= ${MOST.image}`),
    message: `images of containers of peers have names of ${MOST.image} characters at most`,
  },
  {
    // A node that is drained waits as long.
    expression: `object.spec.?terminationGracePeriodSeconds.orValue(0) <= ${MOST.graceSeconds}`,
    message: `pods of peers end within a day: terminationGracePeriodSeconds is ${MOST.graceSeconds} at most`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantSizesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-sizes', {
    resourceRules: [
      // Images and tolerations of a pod that is there can grow.
      writes('', ['pods'], 'CREATE', 'UPDATE'),
      writes('', ['pods/ephemeralcontainers'], 'UPDATE'),
    ],
    // A pod from before these bounds must be able to end: finalizers are no part of its spec.
    matchConditions: [{ name: 'grows', expression: 'oldObject == null || object.spec != oldObject.spec' }],
    validations,
  });
