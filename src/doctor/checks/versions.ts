import { conditionOf } from '../../api/conditions.ts';
import {
  FOREIGN_CLUSTER_CONDITIONS,
  FOREIGN_CLUSTER_REASONS,
  type ForeignCluster,
} from '../../api/foreign-cluster.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';
import { titleOf } from '../subjects.ts';

/** ValidatingAdmissionPolicies, by which our roles and guests are bounded, are there from this one on. */
const OLDEST_MINOR = 30;

const minorOf = (version: string): number | undefined => {
  const [, major, minor] = /^v?(\d+)\.(\d+)/u.exec(version) ?? [];
  return minor === undefined ? undefined : Number(major) * 1000 + Number(minor);
};

export function versionFindings(facts: Facts): readonly Finding[] {
  const { apiServer, lists, software } = facts;
  const findings = new Findings('versions');
  const kubernetes = (subject: string, of: string, version: string): void => {
    const said = { tried: `version of Kubernetes of ${of}`, cameBack: version };
    if ((minorOf(version) ?? 0) >= 1000 + OLDEST_MINOR) return findings.ok(subject, said);
    findings.problem(subject, said, { remedy: `upgrade it to 1.${OLDEST_MINOR} or newer` });
  };
  if (apiServer.version !== undefined) kubernetes(THIS_CLUSTER, 'this cluster', apiServer.version);
  for (const { metadata, status } of itemsOf(lists.virtualNodes)) {
    const { foreignVersion } = status ?? {};
    if (foreignVersion !== undefined)
      kubernetes(metadata.name, `the cluster behind ${metadata.name}`, foreignVersion);
  }
  for (const cluster of itemsOf(lists.foreignClusters))
    judgePeer(findings, { cluster, title: titleOf(cluster, facts) }, software);
  return findings.all();
}

function judgePeer(
  findings: Findings,
  { cluster, title }: { cluster: ForeignCluster; title: string },
  software: string,
): void {
  const link = conditionOf(cluster, FOREIGN_CLUSTER_CONDITIONS.connected);
  const theirs = cluster.status?.link?.software;
  const tried = `compare Tributary ${software} with what ${title} runs`;
  if (link?.reason === FOREIGN_CLUSTER_REASONS.incompatible) {
    findings.problem(
      title,
      { tried, cameBack: link.message },
      {
        remedy: `the two speak no common protocol: upgrade the older side; here Tributary ${software} runs. Over there: tributary version`,
      },
    );
  } else if (theirs !== undefined) {
    const [ours = 0, other = 0] = [minorOf(software), minorOf(theirs)];
    const said = { tried, cameBack: theirs };
    if (ours === other) findings.ok(title, said);
    else {
      const older = ours < other ? 'this cluster' : title;
      findings.warn(title, said, {
        remedy: `upgrade ${older}: a peering needs no more than one minor version between its sides`,
      });
    }
  }
}
