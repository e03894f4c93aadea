import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { TributaryError } from '../../lib/errors.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { type Facts, itemsOf, type Quota } from '../facts.ts';
import { type Finding, Findings } from '../finding.ts';
import { titleOfID } from '../subjects.ts';

const FULL = 100n;
const NEARLY = 90n;

/** What peers have used up of what was lent to them. */
export function quotaFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('quotas');
  const tenants = new Map(
    itemsOf(facts.lists.namespaces).flatMap(({ metadata }) => {
      const peer = metadata.labels?.[LABEL_PEER];
      return peer === undefined ? [] : [[metadata.name, peer] as const];
    }),
  );
  for (const quota of itemsOf(facts.lists.quotas)) {
    const peer = tenants.get(quota.metadata.namespace ?? '');
    if (peer !== undefined) judge(findings, quota, { peer, facts });
  }
  return findings.all();
}

function judge(findings: Findings, quota: Quota, { peer, facts }: { peer: string; facts: Facts }): void {
  const subject = titleOfID(facts, peer);
  const { name, namespace = '' } = quota.metadata;
  const tried = `ResourceQuota ${namespace}/${name} of ${subject}`;
  const rows = Object.entries(quota.status?.hard ?? {}).flatMap(([resource, hard]) => {
    const used = quota.status?.used?.[resource] ?? '0';
    const percent = percentOf(used, hard);
    return percent === undefined ? [] : [{ percent, text: `${resource} ${used} of ${hard}` }];
  });
  const full = rows.filter(({ percent }) => percent >= FULL);
  const nearly = rows.filter(({ percent }) => percent >= NEARLY);
  const policy = policyOf(facts, peer);
  const cure = {
    remedy: 'lend more, or let the peer end pods; a larger share, or none of its limits, makes room',
    ...(policy !== undefined && {
      run: `kubectl patch sharingpolicy ${policy} --type merge -p '{"spec":{"sharePercent":100,"limits":null}}'`,
    }),
  };
  const texts = (some: typeof rows): string => some.map(({ text }) => text).join(', ');
  if (full.length > 0) findings.problem(subject, { tried, cameBack: `used up: ${texts(full)}` }, cure);
  else if (nearly.length > 0)
    findings.warn(subject, { tried, cameBack: `nearly used up: ${texts(nearly)}` }, cure);
  else findings.ok(subject, { tried, cameBack: texts(rows) });
}

/** Undefined where nothing is lent of it, which is no end of a quota. */
function percentOf(used: string, hard: string): bigint | undefined {
  try {
    const whole = parseMilli(hard);
    return whole === 0n ? undefined : (parseMilli(used) * 100n) / whole;
  } catch (error) {
    if (error instanceof TributaryError) return undefined;
    throw error;
  }
}

const policyOf = ({ lists }: Facts, peer: string): string | undefined =>
  itemsOf(lists.sharingPolicies).find(({ status }) => status?.peers?.includes(peer) === true)?.metadata.name;
