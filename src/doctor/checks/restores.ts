import { conditionOf } from '../../api/conditions.ts';
import { VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings } from '../finding.ts';

/** Whether one of two clusters was restored from a backup of late, and pods wait for a decision. */
export function restoreFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('restores');
  for (const node of itemsOf(lists.virtualNodes)) {
    const condition = conditionOf(node, VIRTUAL_NODE_CONDITIONS.restored);
    if (condition === undefined) continue;
    const { name } = node.metadata;
    const isHome = condition.reason === VIRTUAL_NODE_REASONS.homeRestored;
    const remedy = isHome
      ? 'until then, make again what you need of them: apply your manifests; docs/operations/backup.md says what happens to the rest'
      : 'look for pods that have failed with RemotePodLost and have no controller: nobody makes those again';
    findings.warn(name, { tried: `condition Restored of ${name}`, cameBack: condition.message }, { remedy });
  }
  return findings.all();
}
