import { LABEL_APP_NAME } from '../../api/manifest.ts';
import { GATEWAY_LEASE } from '../../api/own-network.ts';
import type { Lease } from '../../api/wire.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Our own pods, the nodes that they are on, and the gateway's Lease. */
export function agentFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('agents');
  const { lists, now } = facts;
  for (const { metadata, spec, status } of itemsOf(lists.deployments)) {
    if (metadata.labels?.[LABEL_APP_NAME] !== 'tributary') continue;
    const name = `${metadata.namespace ?? ''}/${metadata.name}`;
    const wanted = spec?.replicas ?? 1;
    const said = {
      tried: `Deployment ${name}`,
      cameBack: `${status?.readyReplicas ?? 0} of ${wanted} ready`,
    };
    if ((status?.readyReplicas ?? 0) >= wanted && wanted > 0) findings.ok(THIS_CLUSTER, said);
    else {
      findings.problem(THIS_CLUSTER, said, {
        remedy: wanted === 0 ? 'somebody has scaled it to 0: start it' : 'its pods say why they do not run',
        run:
          wanted === 0
            ? `kubectl -n ${metadata.namespace ?? ''} scale deployment ${metadata.name} --replicas=1`
            : `kubectl -n ${metadata.namespace ?? ''} describe pods -l ${LABEL_APP_NAME}=tributary`,
      });
    }
  }
  const gateway = itemsOf(lists.leases).find(({ metadata }) => metadata.name === GATEWAY_LEASE);
  if (gateway !== undefined) judgeGateway(findings, gateway, { facts, now: facts.apiServer.dateMs ?? now });
  return findings.all();
}

/** Slack for a renewal that is under way. */
const SLACK_MS = 5000;

function judgeGateway(findings: Findings, lease: Lease, { facts, now }: { facts: Facts; now: number }): void {
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 15 } = lease.spec ?? {};
  const tried = `Lease ${GATEWAY_LEASE} of the gateway`;
  const node = itemsOf(facts.lists.nodes).find(({ metadata }) => metadata.name === holderIdentity);
  const isNodeDead =
    node !== undefined && node.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True';
  const sinceMs = now - Date.parse(renewTime ?? '');
  const isLate = !(sinceMs <= leaseDurationSeconds * 1000 + SLACK_MS);
  if (holderIdentity !== '' && !isLate) {
    return findings.ok(THIS_CLUSTER, { tried, cameBack: `the gateway on node ${holderIdentity} holds it` });
  }
  const late = Number.isNaN(sinceMs) ? 'never renewed' : `not renewed for ${Math.round(sinceMs / 1000)} s`;
  const where = isNodeDead ? `; node ${holderIdentity} is not Ready` : '';
  const cameBack = holderIdentity === '' ? 'nobody holds it' : `${late} by node ${holderIdentity}${where}`;
  findings.problem(
    THIS_CLUSTER,
    { tried, cameBack },
    {
      remedy: isNodeDead
        ? 'its node died: let a gateway run on another node as well, so that it takes over'
        : 'no gateway runs: start one, on two nodes so that one takes over from the other',
      run: 'kubectl -n tributary-network scale deployment tributary-gateway --replicas=2',
    },
  );
}
