import { conditionOf } from '../../api/conditions.ts';
import {
  disabledIn,
  FOREIGN_CLUSTER_CONDITIONS as CONDITIONS,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  peerIDOf,
} from '../../api/foreign-cluster.ts';
import { TAINT_OUT_OF_SERVICE } from '../../api/taints.ts';
import { closedCondition, VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { Condition } from '../../api/wire.ts';
import { type Dialled, type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, type Said, THIS_CLUSTER } from '../finding.ts';
import { blame, calledBy, forgetting, namesakesOf, titleOf } from '../subjects.ts';

/** Whether clusters are found, whether their endpoints are theirs, and whether there is a link. */
export function reachFindings(facts: Facts): readonly Finding[] {
  const { lists, dialled } = facts;
  const findings = new Findings('reachability');
  const clusters = itemsOf(lists.foreignClusters);
  if (clusters.length === 0 && 'items' in lists.foreignClusters) {
    findings.ok(THIS_CLUSTER, { tried: 'ForeignClusters', cameBack: 'no other cluster is known here' });
  }
  for (const cluster of clusters) {
    judgeLink(findings, cluster, facts);
    const answer = dialled.get(cluster.metadata.name);
    if (answer !== undefined) judgeEndpoint(findings, cluster, { answer, facts });
  }
  return findings.all();
}

function judgeLink(findings: Findings, cluster: ForeignCluster, facts: Facts): void {
  const subject = titleOf(cluster, facts);
  const { link } = cluster.status ?? {};
  const connected = conditionOf(cluster, CONDITIONS.connected);
  const tried = `link of the role cluster with ${subject}`;
  if (link?.connected === true) {
    const cameBack = `${link.dialledBy === 'Them' ? 'it has dialled us' : 'we have dialled it'} (${link.endpoint ?? '?'})`;
    return findings.ok(subject, { tried, cameBack });
  }
  if (connected === undefined) {
    return findings.unknown(subject, {
      tried,
      cameBack: 'no condition yet: the role cluster has not looked',
    });
  }
  const said: Said = { tried, cameBack: `${connected.reason}: ${connected.message}` };
  if (disabledIn(cluster).length > 1 || connected.reason === REASONS.notWanted)
    return findings.ok(subject, said);
  judgeLost(findings, cluster, { subject, said, facts });
}

/** There is no link, although somebody may want one. */
function judgeLost(
  findings: Findings,
  cluster: ForeignCluster,
  { subject, said, facts }: { subject: string; said: Said; facts: Facts },
): void {
  const successor = successorOf(cluster, facts);
  if (successor !== undefined) {
    return blame(findings, { cluster, subject }, said, successionCure(cluster, successor));
  }
  const connected = conditionOf(cluster, CONDITIONS.connected);
  const identity = conditionOf(cluster, CONDITIONS.identity);
  if (identity?.reason === REASONS.wrongIdentity || connected?.reason === REASONS.wrongIdentity) {
    return findings.problem(subject, said, wrongIdentityCure(cluster));
  }
  const { sightings = {} } = cluster.status ?? {};
  const isSeen = Object.values(sightings).some(({ expires }) => Date.parse(expires) > facts.now);
  const cure = linkCure(cluster, connected?.reason, isSeen);
  if (cure === undefined) findings.unknown(subject, said);
  else blame(findings, { cluster, subject }, said, cure);
}

/** Another cluster of that name, with which there is a link: it was probably installed anew, and has a new ID. */
const successorOf = (cluster: ForeignCluster, facts: Facts): ForeignCluster | undefined =>
  namesakesOf(cluster, facts).find(({ status }) => status?.link?.connected === true);

const successionCure = (cluster: ForeignCluster, successor: ForeignCluster): Cure => ({
  remedy: `another cluster of that name answers, ${peerIDOf(successor) ?? successor.metadata.name}: was it installed anew? If this one is gone for good, delete what is left of it here`,
  run: forgetting(cluster),
});

function wrongIdentityCure({ metadata, spec, status }: ForeignCluster): Cure {
  const { name } = metadata;
  const known = Object.values(status?.sightings ?? {}).some(({ endpoints }) =>
    endpoints.some((each) => each !== spec?.endpoint),
  );
  return {
    remedy: known
      ? 'another cluster answers at spec.endpoint; take it out, since discovery knows another endpoint'
      : 'another cluster answers at spec.endpoint; put in HOST:PORT as its owner gives it, or take it out if it dials us',
    run: patchEndpoint(name, known ? null : 'HOST:PORT'),
  };
}

const patchEndpoint = (name: string, endpoint: string | null): string =>
  `kubectl patch foreigncluster ${name} --type merge -p '${JSON.stringify({ spec: { endpoint } })}'`;

function linkCure(cluster: ForeignCluster, reason: string | undefined, isSeen: boolean): Cure | undefined {
  const { metadata, spec } = cluster;
  const { name } = metadata;
  switch (reason) {
    case REASONS.noEndpoint:
      return {
        remedy: 'nothing says where it is: name its endpoint, or let it dial us',
        run: patchEndpoint(name, 'HOST:PORT'),
      };
    case REASONS.unreachable:
    case REASONS.linkLost:
      return {
        remedy:
          `is its role cluster running, and does the network let TCP through to ${spec?.endpoint ?? 'its endpoint'}? ` +
          `One direction is enough.${isSeen ? '' : ' Discovery does not see it any more.'} Over there: tributary doctor. ` +
          `If that cluster is gone for good: ${forgetting(cluster)}`,
      };
    case REASONS.identityUnconfirmed:
      return {
        remedy: 'compare the ClusterID with what its owner tells you, then run the command in the message',
      };
    case REASONS.incompatible:
      return { remedy: 'the lines "versions" say which side to upgrade' };
    default:
      return undefined;
  }
}

/** The doctor may run at a place from which nothing is reached, so that no answer proves nothing. */
function judgeEndpoint(
  findings: Findings,
  cluster: ForeignCluster,
  { answer, facts }: { answer: Dialled; facts: Facts },
): void {
  const subject = titleOf(cluster, facts);
  const tried = `dial ${answer.endpoint} from here, by TLS`;
  const wanted = peerIDOf(cluster);
  if ('error' in answer) return findings.unknown(subject, { tried, cameBack: answer.error });
  if (wanted === undefined || answer.clusterID === wanted) {
    return findings.ok(subject, { tried, cameBack: `it proves to be ${answer.clusterID}` });
  }
  const said = { tried, cameBack: `another cluster: ${answer.clusterID}, and not ${wanted}` };
  const other = itemsOf(facts.lists.foreignClusters).find((one) => peerIDOf(one) === answer.clusterID);
  if (
    cluster.status?.link?.connected !== true &&
    other !== undefined &&
    calledBy(other) === calledBy(cluster)
  ) {
    return blame(findings, { cluster, subject }, said, successionCure(cluster, other));
  }
  findings.problem(
    subject,
    said,
    answer.endpoint === cluster.spec?.endpoint
      ? wrongIdentityCure(cluster)
      : { remedy: 'what discovery says of it is wrong: look at what announces that endpoint' },
  );
}

/** Whether the API servers behind virtual nodes answer. */
export function virtualNodeFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('virtual-nodes');
  for (const node of itemsOf(lists.virtualNodes)) {
    const { name } = node.metadata;
    const ready = conditionOf(node, VIRTUAL_NODE_CONDITIONS.ready);
    const tried = `VirtualNode ${name}`;
    if (ready === undefined) {
      findings.problem(
        name,
        { tried, cameBack: 'no agent serves it' },
        {
          remedy:
            'the role cluster starts one for each peer; for one made by hand, apply `tributary manifests peer`',
        },
      );
      continue;
    }
    const said = { tried, cameBack: `${ready.reason}: ${ready.message}` };
    const nodeName = node.status?.nodeName ?? name;
    if (closedCondition(node) !== undefined) findings.warn(name, said, { remedy: CLOSED_REMEDY });
    else if (ready.status === 'True' && isOutOfService(lists, nodeName))
      findings.warn(name, { tried, cameBack: OUT_OF_SERVICE }, returnedCure(nodeName));
    else if (ready.status === 'True') findings.ok(name, said);
    else findings.problem(name, said, { remedy: nodeRemedy(ready) });
  }
  return findings.all();
}

const isOutOfService = (lists: Facts['lists'], nodeName: string): boolean =>
  itemsOf(lists.nodes).some(
    ({ metadata, spec }) =>
      metadata.name === nodeName && spec?.taints?.some(({ key }) => key === TAINT_OUT_OF_SERVICE),
  );

const OUT_OF_SERVICE = `it is Ready, and the taint ${TAINT_OUT_OF_SERVICE}, which people set, keeps all pods away`;

const returnedCure = (nodeName: string): { remedy: string; run: string } => ({
  remedy: 'its cluster is back, and what ran there without a pod here has ended: take the taint away',
  run: `kubectl taint node ${nodeName} ${TAINT_OUT_OF_SERVICE}-`,
});

const CLOSED_REMEDY =
  'new pods need room elsewhere until what the message says is changed; docs/peering.md explains it, under "When no new pods are sent"';

function nodeRemedy({ reason }: Condition): string {
  const R = VIRTUAL_NODE_REASONS;
  switch (reason) {
    case R.unreachable:
      return 'is the API server of the provider up, and does the network let us through to it? Over there: tributary doctor';
    case R.credentialsRejected:
      return 'see certificates';
    case R.notAuthorized:
      return 'the provider has to give the account its rights again: over there, tributary doctor';
    case R.stopped:
    case R.starting:
      return 'its agent may still be starting; the lines "agents" say whether it runs';
    default:
      return 'docs/troubleshooting.md explains it, under "Conditions of a VirtualNode"';
  }
}
