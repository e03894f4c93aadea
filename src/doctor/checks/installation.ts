import { INSTALLATION_REF } from '../../api/installation-record.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { Facts, Seen } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Whether what `tributary install` and `tributary upgrade` were to make is there. Who installed otherwise has left no record. */
export function installationFindings({ installation, lists }: Facts): readonly Finding[] {
  const findings = new Findings('installation');
  if (installation === undefined) return findings.all();
  const { unfinished, roles } = installation;
  const tried = `ConfigMap ${INSTALLATION_REF.namespace}/${INSTALLATION_REF.name}`;
  if (unfinished !== undefined) {
    const remedy = 'repeat it, with other values if you like';
    findings.problem(THIS_CLUSTER, { tried, cameBack: unfinished }, { remedy, run: 'tributary upgrade' });
  }
  const missing = roles.filter(({ kind, namespace, name }) =>
    lacks(kind === 'Deployment' ? lists.deployments : lists.daemonSets, { namespace, name }),
  );
  for (const { kind, namespace, name } of missing) {
    findings.problem(
      THIS_CLUSTER,
      { tried: `${kind} ${namespace}/${name}`, cameBack: 'it is not there, though the installation has it' },
      { remedy: 'make it again', run: 'tributary upgrade' },
    );
  }
  if (unfinished === undefined && missing.length === 0)
    findings.ok(THIS_CLUSTER, { tried, cameBack: 'what was installed is there' });
  return findings.all();
}

/** False where it cannot be known. */
const lacks = (seen: Seen<KubeObject>, ref: { namespace: string; name: string }): boolean =>
  'items' in seen &&
  !seen.items.some(({ metadata }) => metadata.namespace === ref.namespace && metadata.name === ref.name);
