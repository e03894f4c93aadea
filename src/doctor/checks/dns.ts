import { conditionOf } from '../../api/conditions.ts';
import { VIRTUAL_NODE_CONDITIONS } from '../../api/virtual-node.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Whether pods of guests, and our own, find names: by the DNS of this cluster, or by that of their home. */
export function dnsFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('dns');
  if ('items' in lists.dnsSlices) {
    const slices = lists.dnsSlices.items;
    const ready = slices
      .flatMap(({ endpoints }) => endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false);
    const tried = 'endpoints of Service kube-system/kube-dns';
    const guests = itemsOf(lists.namespaces).filter(
      ({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined,
    );
    const who =
      guests.length === 0
        ? 'no pod finds'
        : `neither guests (${guests.length} tenant namespaces) nor our own pods find`;
    if (ready.length > 0) findings.ok(THIS_CLUSTER, { tried, cameBack: `${ready.length} are ready` });
    else if (slices.length === 0)
      findings.unknown(THIS_CLUSTER, {
        tried,
        cameBack: 'there is no such Service: this cluster may have another DNS',
      });
    else findings.problem(THIS_CLUSTER, { tried, cameBack: `none is ready: ${who} names` }, dnsCure(lists));
  }
  for (const node of itemsOf(lists.virtualNodes)) {
    const condition = conditionOf(node, VIRTUAL_NODE_CONDITIONS.homeDns);
    if (condition === undefined) continue;
    const said = { tried: `DNS of ours for our pods on ${node.metadata.name}`, cameBack: condition.message };
    if (condition.status === 'True') findings.ok(node.metadata.name, said);
    else if (condition.status === 'Unknown') findings.unknown(node.metadata.name, said);
    else
      findings.problem(node.metadata.name, said, {
        remedy:
          'until then, remove dns: Home from spec.network of the ForeignCluster: pods then ask the DNS over there',
      });
  }
  return findings.all();
}

function dnsCure({ deployments }: Facts['lists']): Cure {
  const dns = itemsOf(deployments).find(
    ({ metadata }) => metadata.namespace === 'kube-system' && metadata.labels?.['k8s-app'] === 'kube-dns',
  );
  const name = dns?.metadata.name ?? 'coredns';
  if (dns?.spec?.replicas === 0) {
    const run = `kubectl -n kube-system scale deployment ${name} --replicas=2`;
    return { remedy: 'its Deployment is scaled to 0: start it', run };
  }
  return {
    remedy: 'start its pods again; if they do not become ready, their log says why',
    run: `kubectl -n kube-system rollout restart deployment ${name}`,
  };
}
