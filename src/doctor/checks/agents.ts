import { isConditionTrue } from '../../api/conditions.ts';
import { LABEL_APP_NAME } from '../../api/manifest.ts';
import { LABEL_NODE_TYPE } from '../../api/names.ts';
import { hasTunnels, optionOf } from '../../api/one-process.ts';
import { GATEWAY_LEASE } from '../../api/own-network.ts';
import { replicaFailureOf } from '../../api/replica-failure.ts';
import type { Lease, Node } from '../../api/wire.ts';
import { type DaemonSet, type Deployment, type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, THIS_CLUSTER } from '../finding.ts';
import { GATEWAY_NAME, gatewayDeployment, gatewayLogs, oneProcess, withoutWireGuard } from '../subjects.ts';

/** Our own pods, the nodes that they are on, and the gateway's Lease. */
export function agentFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('agents');
  const { lists, now } = facts;
  const ours = itemsOf(lists.deployments).filter(
    ({ metadata }) => metadata.labels?.[LABEL_APP_NAME] === 'tributary',
  );
  judgeWireGuard(findings, facts);
  for (const deployment of ours) judgeDeployment(findings, deployment);
  for (const daemonSet of itemsOf(lists.daemonSets)) judgeDaemonSet(findings, daemonSet, facts);
  const one = oneProcess(facts);
  if (hasTunnels(one)) judgeNodes(findings, itemsOf(lists.nodes));
  const gateway = itemsOf(lists.leases).find(({ metadata }) => metadata.name === GATEWAY_LEASE);
  if (gateway !== undefined) judgeGateway(findings, gateway, { facts, now: facts.apiServer.dateMs ?? now });
  return findings.all();
}

function judgeDeployment(findings: Findings, deployment: Deployment): void {
  const { metadata, spec, status } = deployment;
  const { namespace = '', name } = metadata;
  const wanted = spec?.replicas ?? 1;
  const ready = status?.readyReplicas ?? 0;
  const failure = replicaFailureOf(deployment);
  const why = failure === undefined ? '' : `, and no pod can be made: ${failure}`;
  const said = { tried: `Deployment ${namespace}/${name}`, cameBack: `${ready} of ${wanted} ready${why}` };
  const isRunning = ready >= wanted && wanted > 0;
  if (isRunning && failure === undefined) return findings.ok(THIS_CLUSTER, said);
  const cure = deploymentCure({ namespace, name, wanted, failure });
  if (isRunning) findings.warn(THIS_CLUSTER, said, cure);
  else findings.problem(THIS_CLUSTER, said, cure);
}

function deploymentCure({
  namespace,
  name,
  wanted,
  failure,
}: Record<'namespace' | 'name', string> & { wanted: number; failure: string | undefined }): Cure {
  if (wanted === 0) {
    return {
      remedy: 'somebody has scaled it to 0: start it',
      run: `kubectl -n ${namespace} scale deployment ${name} --replicas=1`,
    };
  }
  if (failure?.includes('PodSecurity') === true) {
    return {
      remedy: `namespace ${namespace} permits less than the pod needs: have both made anew`,
      run: 'tributary upgrade',
    };
  }
  if (failure !== undefined) {
    return {
      remedy: 'take away what the message names; the pod then comes by itself',
      run: `kubectl -n ${namespace} describe replicasets -l ${LABEL_APP_NAME}=tributary`,
    };
  }
  return {
    remedy: 'its pods say why they do not run',
    run: `kubectl -n ${namespace} describe pods -l ${LABEL_APP_NAME}=tributary`,
  };
}

const isReal = ({ metadata }: Node): boolean => metadata.labels?.[LABEL_NODE_TYPE] === undefined;

/** A pod for each node: where one is missing, pods of that node reach no peer. */
function judgeDaemonSet(findings: Findings, { metadata, status }: DaemonSet, { lists }: Facts): void {
  const { namespace = '', name } = metadata;
  const { numberReady: ready = 0, desiredNumberScheduled: wanted = 0 } = status ?? {};
  const real = itemsOf(lists.nodes).filter(isReal);
  const nodes = 'items' in lists.nodes ? `, in a cluster with ${real.length} node(s)` : '';
  const said = { tried: `DaemonSet ${namespace}/${name}`, cameBack: `${ready} of ${wanted} ready${nodes}` };
  const isEmpty = 'items' in lists.nodes && real.length === 0;
  if ((ready >= wanted && wanted > 0) || isEmpty) return findings.ok(THIS_CLUSTER, said);
  const remedy =
    wanted === 0
      ? 'it chooses no node: look at its node selector, its affinity and the taints of the nodes'
      : 'its pods say why they do not run; of pods that cannot be made, its events do';
  const cure = {
    remedy,
    run: `kubectl -n ${namespace} describe daemonset,pods -l ${LABEL_APP_NAME}=tributary`,
  };
  // The pod of a node that is away is away with it.
  const away = real.filter(({ status: node }) => !isConditionTrue(node?.conditions, 'Ready')).length;
  if (ready > 0 && wanted - ready <= away) findings.warn(THIS_CLUSTER, said, cure);
  else findings.problem(THIS_CLUSTER, said, cure);
}

/** One process routes for its own node only. */
function judgeNodes(findings: Findings, nodes: readonly Node[]): void {
  const real = nodes.filter(isReal);
  const tried = 'one process for all roles, which sets up the network of its own node';
  if (real.length <= 1) return findings.ok(THIS_CLUSTER, { tried, cameBack: 'there is no other node' });
  findings.problem(
    THIS_CLUSTER,
    { tried, cameBack: `${real.length} nodes: pods on the others reach no peer through a tunnel` },
    {
      remedy: 'give each role a process of its own again, and each node its routes',
      run: 'tributary upgrade --one-process false',
    },
  );
}

/** Slack for a renewal that is under way. */
const SLACK_MS = 5000;

function lateness(sinceMs: number, node: string, isNodeDead: boolean): string {
  const late = Number.isNaN(sinceMs) ? 'never renewed' : `not renewed for ${Math.round(sinceMs / 1000)} s`;
  return `${late} by node ${node}${isNodeDead ? `; node ${node} is not Ready` : ''}`;
}

function judgeGateway(findings: Findings, lease: Lease, { facts, now }: { facts: Facts; now: number }): void {
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 15 } = lease.spec ?? {};
  const tried = `Lease ${GATEWAY_LEASE} of the gateway`;
  const node = itemsOf(facts.lists.nodes).find(({ metadata }) => metadata.name === holderIdentity);
  const isNodeDead = node !== undefined && !isConditionTrue(node.status?.conditions, 'Ready');
  const sinceMs = now - Date.parse(renewTime ?? '');
  const isLate = !(sinceMs <= leaseDurationSeconds * 1000 + SLACK_MS);
  if (holderIdentity !== '' && !isLate) {
    return findings.ok(THIS_CLUSTER, { tried, cameBack: `the gateway on node ${holderIdentity} holds it` });
  }
  const cameBack = holderIdentity === '' ? 'nobody holds it' : lateness(sinceMs, holderIdentity, isNodeDead);
  findings.problem(THIS_CLUSTER, { tried, cameBack }, gatewayCure(facts, isNodeDead));
}

function gatewayCure(facts: Facts, isNodeDead: boolean): Cure {
  if (oneProcess(facts) !== undefined)
    return { remedy: 'the log of the one process says why', run: gatewayLogs(facts) };
  const { deployments } = facts.lists;
  if ('items' in deployments && gatewayDeployment(facts) === undefined)
    return {
      remedy: `no gateway runs, and there is no Deployment ${GATEWAY_NAME}: make it again`,
      run: 'tributary upgrade',
    };
  return {
    remedy: isNodeDead
      ? 'its node died: let a gateway run on another node as well, so that it takes over'
      : 'no gateway runs: start one, on two nodes so that one takes over from the other',
    run: `kubectl -n tributary-network scale deployment ${GATEWAY_NAME} --replicas=2`,
  };
}

/** The tunnels are dead by it, and say nothing better. */
function judgeWireGuard(findings: Findings, facts: Facts): void {
  const condition = withoutWireGuard(facts);
  if (condition === undefined) return;
  const said = { tried: 'WireGuard at the gateway', cameBack: condition.message };
  findings.problem(
    THIS_CLUSTER,
    said,
    optionOf(gatewayDeployment(facts), 'wireguard') === 'kernel'
      ? {
          remedy: 'load the module wireguard on the node of the gateway, or let wireguard-go take its place',
          run: 'tributary upgrade --wireguard auto',
        }
      : {
          remedy: 'the container wireguard of the gateway must run: its log says why it does not',
          run: gatewayLogs(facts),
        },
  );
}
