import type { PolicyRule } from '../../api/rbac.ts';
import type { ExpectedRights, Facts, ReadProblem, Seen } from '../facts.ts';
import { itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Whether the API server answers, and what the person who asks may read. */
export function accessFindings({ apiServer, lists, installation }: Facts): readonly Finding[] {
  const findings = new Findings('access');
  const tried = `read version and objects from ${apiServer.url}`;
  if (apiServer.error !== undefined) {
    findings.problem(
      THIS_CLUSTER,
      { tried, cameBack: apiServer.error },
      {
        remedy: 'correct the kubeconfig or its context; this must answer',
        run: 'kubectl get --raw /version',
      },
    );
    return findings.all();
  }
  const problems = Object.values(lists as unknown as Record<string, Seen<unknown>>).flatMap((seen) =>
    'problem' in seen ? [seen.problem] : [],
  );
  for (const problem of problems) unread(findings, problem, installation !== undefined);
  if (problems.length === 0) findings.ok(THIS_CLUSTER, { tried, cameBack: 'all of it' });
  return findings.all();
}

/** `isRecorded`: `tributary install` has been here. */
function unread(
  findings: Findings,
  { message, wanted, isForbidden, isKindUnknown }: ReadProblem,
  isRecorded: boolean,
): void {
  const said = { tried: wanted, cameBack: message };
  if (isKindUnknown && wanted.includes('tributary.dev')) {
    findings.problem(THIS_CLUSTER, said, {
      remedy: 'install the definitions of Tributary',
      run: isRecorded ? UPGRADE : 'tributary manifests crds | kubectl apply --server-side -f -',
    });
  } else if (isForbidden) {
    const remedy = `whoever runs this lacks the right to ${wanted}; ask an administrator for it, so that the rest can be judged`;
    findings.unknown(THIS_CLUSTER, said, { remedy });
  } else {
    findings.unknown(THIS_CLUSTER, said);
  }
}

/** Whether our own roles have the rights that this version gives them. */
export function rightsFindings({ lists, expectedRights, installation }: Facts): readonly Finding[] {
  const findings = new Findings('rights');
  for (const expected of expectedRights) {
    const seen = expected.kind === 'ClusterRole' ? lists.clusterRoles : lists.roles;
    // Without a look there is nothing to say; `access` says why.
    if (!('items' in seen)) continue;
    const found = itemsOf(seen).find(
      ({ metadata }) => metadata.name === expected.name && metadata.namespace === expected.namespace,
    );
    judge(findings, expected, { rules: found?.rules, isRecorded: installation !== undefined });
  }
  return findings.all();
}

function judge(
  findings: Findings,
  expected: ExpectedRights,
  { rules, isRecorded }: { rules: readonly PolicyRule[] | undefined; isRecorded: boolean },
): void {
  const { kind, name, namespace } = expected;
  const where = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  const said = (cameBack: string): { tried: string; cameBack: string } => ({
    tried: `compare ${where} with what this version needs`,
    cameBack,
  });
  const lacking = rules === undefined ? expected.rules : lackingRules(expected.rules, rules);
  if (lacking.length === 0) return findings.ok(THIS_CLUSTER, said('nothing is missing'));
  const texts = lacking.map(ruleText).join('; ');
  const at = namespace === undefined ? '' : ` -n ${namespace}`;
  findings.problem(
    THIS_CLUSTER,
    said(rules === undefined ? 'it is not there' : `it lacks: ${texts}`),
    rules === undefined
      ? missingCure(isRecorded)
      : {
          remedy: 'give the role these rights back',
          run: `kubectl patch ${kind.toLowerCase()} ${name}${at} --type json -p '${JSON.stringify(
            lacking.map((value) => ({ op: 'add', path: '/rules/-', value })),
          )}'`,
        },
  );
}

const UPGRADE = 'tributary upgrade';

const missingCure = (isRecorded: boolean): Cure =>
  isRecorded
    ? { remedy: 'have the installation make it again', run: UPGRADE }
    : { remedy: 'apply again what `tributary manifests` prints for the role, with the options that you use' };

/** The parts of the wanted rules that no rule grants. */
export function lackingRules(wanted: readonly PolicyRule[], granted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap((rule) => {
    const verbs = rule.verbs.filter((verb) => !granted.some((other) => grants(other, rule, verb)));
    return verbs.length === 0 ? [] : [{ ...rule, verbs }];
  });
}

const covers = (has: readonly string[] | undefined, needs: readonly string[] | undefined): boolean =>
  has?.includes('*') === true || (needs ?? []).every((each) => has?.includes(each) === true);

function grants(granted: PolicyRule, wanted: PolicyRule, verb: string): boolean {
  const names = granted.resourceNames ?? [];
  const wantedNames = wanted.resourceNames ?? [];
  const isNamed = names.length === 0 || (wantedNames.length > 0 && covers(names, wantedNames));
  return (
    covers(granted.verbs, [verb]) &&
    covers(granted.apiGroups, wanted.apiGroups) &&
    covers(granted.resources, wanted.resources) &&
    isNamed
  );
}

function ruleText({ verbs, resources = [], apiGroups = [], resourceNames = [] }: PolicyRule): string {
  const group = apiGroups[0] === undefined || apiGroups[0] === '' ? '' : `.${apiGroups[0]}`;
  const names = resourceNames.length === 0 ? '' : ` (${resourceNames.join(', ')})`;
  return `${verbs.join(',')} ${resources.map((resource) => `${resource}${group}`).join(',')}${names}`;
}
