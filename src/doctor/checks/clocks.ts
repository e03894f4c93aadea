import { HOME_LEASE } from '../../api/names.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { type Facts, itemsOf, type TimedLease } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';
import { titleOfID } from '../subjects.ts';

/** Certificates and leases bear a difference of this size. */
const BEARABLE_MS = 30_000;

/**
 * Whoever renews a Lease writes the time of its own clock, and the API server notes that of its own. So the objects show how far
 * apart the two are, whoever looks at them.
 */
export function clockFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('clocks');
  const { dateMs, hereMs, url } = facts.apiServer;
  if (dateMs !== undefined && hereMs !== undefined) {
    judge(findings, THIS_CLUSTER, {
      offMs: hereMs - dateMs,
      tried: `clock here against that of ${url}`,
      who: 'the machine that this command runs on',
    });
  }
  for (const lease of itemsOf(facts.lists.leases)) {
    const offMs = offsetOf(lease);
    if (offMs === undefined) continue;
    const { subject, who } = writerOf(lease, facts);
    judge(findings, subject, { offMs, who, tried: `clock of ${who} against the API server's` });
  }
  return findings.all();
}

function offsetOf({ spec, writtenAt }: TimedLease): number | undefined {
  if (spec?.renewTime === undefined || writtenAt === undefined) return undefined;
  const offMs = Date.parse(spec.renewTime) - Date.parse(writtenAt);
  return Number.isNaN(offMs) ? undefined : offMs;
}

function writerOf({ metadata, spec }: TimedLease, facts: Facts): { subject: string; who: string } {
  const { name, namespace = '' } = metadata;
  if (name !== HOME_LEASE) {
    const holder = spec?.holderIdentity ?? '';
    return { subject: THIS_CLUSTER, who: `the holder of Lease ${namespace}/${name} (${holder})` };
  }
  const tenant = itemsOf(facts.lists.namespaces).find((each) => each.metadata.name === namespace);
  const peer = tenant?.metadata.labels?.[LABEL_PEER];
  const title = peer === undefined ? namespace : titleOfID(facts, peer);
  return { subject: title, who: `the home ${title}` };
}

function judge(
  findings: Findings,
  subject: string,
  { offMs, tried, who }: { offMs: number; tried: string; who: string },
): void {
  const seconds = Math.round(Math.abs(offMs) / 1000);
  const cameBack = seconds < 2 ? 'they agree' : `${seconds} s ${offMs > 0 ? 'ahead' : 'behind'}`;
  if (Math.abs(offMs) <= BEARABLE_MS) return findings.ok(subject, { tried, cameBack });
  const remedy = `set the clock of ${who} back to true time (over there: timedatectl set-ntp true); tokens and certificates fail while it is off`;
  findings.problem(subject, { tried, cameBack }, { remedy });
}
