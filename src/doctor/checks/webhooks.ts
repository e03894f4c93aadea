import { WEBHOOK_CONFIGURATION } from '../../api/admission.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

const FAILED = /failed calling webhook "([^"]*)"/u;

/** Whether the API server reaches the admission webhook: it is asked to admit a pod, for a trial. */
export function webhookFindings({ webhookTrial, lists }: Facts): readonly Finding[] {
  const findings = new Findings('webhook');
  if (webhookTrial === undefined) {
    const isThere = itemsOf(lists.webhooks).some(({ metadata }) => metadata.name === WEBHOOK_CONFIGURATION);
    if (!isThere || !('items' in lists.namespaces)) return [];
    const cameBack = 'no namespace is offloaded, so that it is asked about nothing';
    findings.ok(THIS_CLUSTER, { tried: 'admission webhook', cameBack });
    return findings.all();
  }
  const { namespace, error } = webhookTrial;
  const tried = `create a pod in ${namespace} for a trial (dry run)`;
  if (error === undefined) findings.ok(THIS_CLUSTER, { tried, cameBack: 'admitted' });
  else if (FAILED.test(error)) {
    findings.problem(
      THIS_CLUSTER,
      { tried, cameBack: error },
      {
        remedy:
          'the API server does not reach the role cluster: see that it runs and that the way to its port is open, then start it again',
        run: 'kubectl -n tributary-system rollout restart deployment/tributary-cluster',
      },
    );
  } else findings.unknown(THIS_CLUSTER, { tried, cameBack: error });
  return findings.all();
}
