import {
  BREAK_OUT_GROUP,
  CLUSTER_MODE,
  CLUSTER_MODE_CONDITIONS,
  clusterModes,
  type ClusterModeSpec,
  type ClusterModeStatus,
  TETHER_DEFAULTS,
  TETHER_LIMITS,
  type TetherSpec,
  type TetherStatus,
} from '../cluster-mode.ts';
import { AGE, clusterID, clusterName, column, fenceTerms, observedGeneration, time } from './common.ts';
import type { Definition } from './definition.ts';
import { choice, conditions, dnsName, int32, objectOf, type Schema, type SchemaOf, setOf } from './schema.ts';

const { least, most } = TETHER_LIMITS.lostAfterSeconds;
const bounds = (limits: { least: number; most: number }): { minimum: number; maximum: number } => ({
  minimum: limits.least,
  maximum: limits.most,
});

const tether: Schema = {
  ...objectOf<TetherSpec>(
    'Hands this cluster over to one other cluster, which then decides what runs on the nodes here. Taken away, this ' +
      'cluster controls its nodes again at once.',
    ['cluster'],
    {
      cluster: dnsName(
        'Name of the ForeignCluster that stands for it. To choose another one, take the tether away first.',
      ),
      lostAfterSeconds: int32(
        'When the other cluster was not heard for so long, this cluster controls its nodes again.',
        { default: TETHER_DEFAULTS.lostAfterSeconds, minimum: least, maximum: most },
      ),
      afterLoss: choice(
        'What happens when a cluster that was lost is back. Retether: it controls the nodes here again. Autonomous: this ' +
          'cluster controls its nodes until the tether is taken away and made again.',
        ['Retether', 'Autonomous'],
        'Retether',
      ),
      whenLost: choice(
        'What becomes of forwarded pods while the other cluster is lost. Stay: they stay there, and this cluster brings none ' +
          'back; controllers may replace theirs, as those of any lost node. RunLocally: the other cluster stops them, and then ' +
          'they run on the nodes here; it must have agreed.',
        ['Stay', 'RunLocally'],
        'Stay',
      ),
      stopSeconds: int32(
        'For RunLocally: how long the other cluster may take to stop forwarded pods. They get no longer to end by themselves.',
        { default: TETHER_DEFAULTS.stopSeconds, ...bounds(TETHER_LIMITS.stopSeconds) },
      ),
      marginSeconds: int32(
        'For RunLocally: how long this cluster waits after the other one must have stopped forwarded pods. It must be longer ' +
          'than the clocks of the nodes of the other cluster differ.',
        { default: TETHER_DEFAULTS.marginSeconds, ...bounds(TETHER_LIMITS.marginSeconds) },
      ),
      evict: {
        type: 'boolean',
        description:
          'Whether pods that ran here before are evicted, as their budgets permit, so that they run where the other ' +
          'cluster places them. Otherwise they stay until they end.',
        default: false,
      },
      keepForSeconds: int32('How long pods of the other cluster go on here after the end of the tether.', {
        default: TETHER_DEFAULTS.keepForSeconds,
        minimum: 0,
        maximum: 31_536_000,
      }),
      breakOutGroup: {
        type: 'string',
        description: 'Users in this group may change what the tether guards.',
        default: BREAK_OUT_GROUP,
        minLength: 1,
        maxLength: 253,
      },
    },
  ),
  'x-kubernetes-validations': [
    {
      rule: 'self.cluster == oldSelf.cluster',
      message:
        'this cluster is tethered, or about to be, to the one that is named here; end that first with: tributary untether',
      reason: 'FieldValueForbidden',
      fieldPath: '.cluster',
    },
  ],
};

const spec: Schema = {
  type: 'object',
  description: 'Which mode is wanted: without a tether, this cluster is autonomous.',
  default: {},
  properties: { tether } satisfies SchemaOf<ClusterModeSpec>,
};

const status: Schema = objectOf<ClusterModeStatus>('What was observed.', [], {
  observedGeneration,
  mode: choice('Who decides what runs on the nodes here: this cluster, or the one that it is tethered to.', [
    'Autonomous',
    'Tethered',
  ]),
  phase: choice(
    'Entering: the other cluster is asked. Refused: something is in the way, or the other cluster has said no. ' +
      'Tethered: it controls the nodes here. Lost: it was not heard for too long, and this cluster controls its nodes. ' +
      'Ending: what was made for the tether is being removed.',
    ['Autonomous', 'Entering', 'Refused', 'Tethered', 'Lost', 'Ending'],
  ),
  tether: objectOf<TetherStatus>('The other cluster, until nothing is left of the tether.', ['clusterID'], {
    clusterID: clusterID('The identity that it has proved.'),
    clusterName: clusterName('The name that it gives itself; anybody can choose any.'),
    since: time('When this cluster was tethered the last time.'),
    fence: fenceTerms('What the other cluster holds itself to, where RunLocally was agreed.'),
  }),
  nodes: setOf(
    'Nodes here that stand for the other cluster: pods of users are bound to no other node while tethered.',
    64,
    dnsName('Name of a Node.'),
  ),
  runsLocallySince: time('Since when forwarded pods are brought back to the nodes here.'),
  contactLost: time('When it was noticed that the link had ended; absent while there is one.'),
  conditions: conditions(Object.values(CLUSTER_MODE_CONDITIONS).join(', ')),
});

export const clusterModeDefinition: Definition = {
  type: clusterModes,
  shortNames: ['cmode'],
  schema: {
    ...objectOf<{ spec: object; status: object }>(
      'Who controls the nodes of this cluster: itself, or the one cluster to which it is tethered. There is one ' +
        `ClusterMode; its name is ${CLUSTER_MODE}.`,
      [],
      { spec, status },
    ),
    'x-kubernetes-validations': [
      {
        rule: `self.metadata.name == '${CLUSTER_MODE}'`,
        message: `a cluster has one mode: the object must be called ${CLUSTER_MODE}`,
        reason: 'FieldValueInvalid',
      },
    ],
  },
  columns: [
    column('Mode', '.status.mode', 'Who decides what runs on the nodes here.'),
    column('Phase', '.status.phase', 'How far a tether has come.'),
    column('Cluster', '.spec.tether.cluster', 'The ForeignCluster to which this cluster is tethered.'),
    column(
      'Message',
      `.status.conditions[?(@.type=="${CLUSTER_MODE_CONDITIONS.tethered}")].message`,
      'Why it is so.',
    ),
    AGE,
  ],
};
