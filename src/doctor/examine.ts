import { peerIDOf } from '../api/foreign-cluster.ts';
import { accessFindings, rightsFindings } from './checks/access.ts';
import { agentFindings } from './checks/agents.ts';
import { certificateFindings } from './checks/certificates.ts';
import { clockFindings } from './checks/clocks.ts';
import { dnsFindings } from './checks/dns.ts';
import { installationFindings } from './checks/installation.ts';
import { namespaceFindings } from './checks/namespaces.ts';
import { overlayFindings } from './checks/overlay.ts';
import { podFindings } from './checks/pods.ts';
import { podAddressFindings } from './checks/pod-addresses.ts';
import { policyFindings } from './checks/policies.ts';
import { quotaFindings } from './checks/quotas.ts';
import { reachFindings, virtualNodeFindings } from './checks/reachability.ts';
import { restoreFindings } from './checks/restores.ts';
import { addressFindings, mtuFindings, tunnelFindings } from './checks/tunnels.ts';
import { versionFindings } from './checks/versions.ts';
import { webhookFindings } from './checks/webhooks.ts';
import { type Facts, itemsOf, type Lists } from './facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from './finding.ts';
import { calledBy, titleOf } from './subjects.ts';
import { LABEL_PROVIDER } from '../api/names.ts';

/** In the order in which they are shown: what others depend on comes first. */
const CHECKS: readonly ((facts: Facts) => readonly Finding[])[] = [
  accessFindings,
  installationFindings,
  rightsFindings,
  versionFindings,
  certificateFindings,
  clockFindings,
  agentFindings,
  webhookFindings,
  reachFindings,
  policyFindings,
  virtualNodeFindings,
  namespaceFindings,
  restoreFindings,
  tunnelFindings,
  overlayFindings,
  mtuFindings,
  addressFindings,
  podAddressFindings,
  dnsFindings,
  quotaFindings,
  podFindings,
];

/** What the checks say; `peer`: of this ForeignCluster and of this cluster itself only. Throws nothing. */
export function examine(facts: Facts, peer?: string): readonly Finding[] {
  const findings = isInstalled(facts) ? CHECKS.flatMap((check) => check(facts)) : notInstalled(facts);
  if (peer === undefined) return findings;
  const subjects = subjectsOf(facts, peer);
  return findings.filter(({ subject }) => subject === THIS_CLUSTER || subjects.has(subject));
}

const isMissing = (seen: Lists[keyof Lists]): boolean => 'problem' in seen && seen.problem.isKindUnknown;

const isInstalled = ({ lists }: Facts): boolean =>
  !isMissing(lists.foreignClusters) || !isMissing(lists.virtualNodes);

/** All checks would say the same. */
function notInstalled({ apiServer }: Facts): readonly Finding[] {
  const findings = new Findings('access');
  findings.problem(
    THIS_CLUSTER,
    {
      tried: `read what Tributary has in ${apiServer.url}`,
      cameBack: 'the API server does not know its kinds: Tributary is not installed there',
    },
    {
      remedy: 'install it, or choose the cluster that you mean with --context',
      run: 'tributary install CLUSTER_NAME --image IMAGE',
    },
  );
  return findings.all();
}

/** Whether anything here is called so; true also where that cannot be read. */
export function isKnown(facts: Facts, peer: string): boolean {
  const { foreignClusters, virtualNodes } = facts.lists;
  if (!('items' in foreignClusters)) return true;
  const isNode = itemsOf(virtualNodes).some(({ metadata }) => metadata.name === peer);
  return isNode || subjectsOf(facts, peer).size > 1;
}

/** All that findings call a peer: its name, its ID, and the virtual nodes that stand for it. */
function subjectsOf(facts: Facts, peer: string): ReadonlySet<string> {
  const { lists } = facts;
  const clusters = itemsOf(lists.foreignClusters).filter((cluster) =>
    [cluster.metadata.name, peerIDOf(cluster), calledBy(cluster)].includes(peer),
  );
  const ids = new Set(clusters.map(peerIDOf));
  const nodes = itemsOf(lists.virtualNodes).filter(({ metadata }) =>
    ids.has(metadata.labels?.[LABEL_PROVIDER]),
  );
  return new Set([
    peer,
    ...clusters.flatMap((cluster) => [
      cluster.metadata.name,
      titleOf(cluster, facts),
      peerIDOf(cluster) ?? '',
    ]),
    ...nodes.map(({ metadata }) => metadata.name),
  ]);
}
