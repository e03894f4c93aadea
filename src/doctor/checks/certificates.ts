import { conditionOf } from '../../api/conditions.ts';
import { X509Certificate } from 'node:crypto';

import { WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE } from '../../api/admission.ts';
import { peerIDOf } from '../../api/foreign-cluster.ts';
import { ANNOTATION_EXPIRES, LABEL_PROVIDER } from '../../api/names.ts';
import { VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS, type VirtualNode } from '../../api/virtual-node.ts';
import type { Condition } from '../../api/wire.ts';
import { type Facts, itemsOf, type SecretFacts } from '../facts.ts';
import { type Cure, type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

const SOON_MS = 2 * 86_400_000;

export function certificateFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('certificates');
  const secrets = itemsOf(facts.lists.secrets);
  for (const node of itemsOf(facts.lists.virtualNodes)) credential(findings, node, secrets, facts);
  webhook(findings, secrets, facts);
  return findings.all();
}

function credential(
  findings: Findings,
  node: VirtualNode,
  secrets: readonly SecretFacts[],
  facts: Facts,
): void {
  const { namespace, name } = node.spec.kubeconfigSecretRef;
  const secret = secrets.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  const subject = node.metadata.name;
  const tried = `credential of VirtualNode ${subject} (Secret ${namespace}/${name})`;
  const end = secret && endOf(secret);
  const condition = conditionOf(node, VIRTUAL_NODE_CONDITIONS.credentials);
  const cure = renewal(node, secret, facts);
  if (end !== undefined && end <= facts.now) {
    findings.problem(subject, { tried, cameBack: `expired at ${new Date(end).toISOString()}` }, cure);
  } else if (condition?.status === 'False') {
    const isUseless = condition.reason === VIRTUAL_NODE_REASONS.notAuthorized;
    findings.problem(subject, { tried, cameBack: told(condition) }, isUseless ? RIGHTS_CURE : cure);
  } else if (end !== undefined) {
    findings.ok(subject, { tried, cameBack: `valid until ${new Date(end).toISOString()}` });
  } else untimed(findings, { subject, tried, condition }, facts.lists.secrets);
}

const told = ({ reason, message }: Condition): string => `${reason}: ${message}`;
/** A credential is accepted, and may do nothing: another one could do no more. */
const RIGHTS_CURE: Cure = {
  remedy: 'the provider has to give the account its rights again: over there, tributary doctor',
};

/** One of which nobody has said when it ends. */
function untimed(
  findings: Findings,
  { subject, tried, condition }: { subject: string; tried: string; condition: Condition | undefined },
  secrets: Facts['lists']['secrets'],
): void {
  if ('problem' in secrets)
    findings.unknown(subject, { tried, cameBack: `not readable: ${secrets.problem.message}` });
  else if (condition?.status === 'Unknown') findings.unknown(subject, { tried, cameBack: told(condition) });
  else findings.ok(subject, { tried, cameBack: condition?.message ?? 'accepted so far' });
}

/** The provider gives it by itself where the peering has made the node. */
function isOfPeering({ metadata }: VirtualNode, secret: SecretFacts | undefined, { lists }: Facts): boolean {
  if (secret !== undefined) return secret.metadata.annotations?.[ANNOTATION_EXPIRES] !== undefined;
  const provider = metadata.labels?.[LABEL_PROVIDER];
  return itemsOf(lists.foreignClusters).some(
    (cluster) =>
      provider !== undefined &&
      peerIDOf(cluster) === provider &&
      (cluster.status?.outgoing?.phase ?? 'None') !== 'None',
  );
}

function renewal(node: VirtualNode, secret: SecretFacts | undefined, facts: Facts): Cure {
  const { metadata, spec } = node;
  if (isOfPeering(node, secret, facts)) {
    return {
      remedy: 'ask the provider for a new one',
      run: `tributary renew ${metadata.labels?.[LABEL_PROVIDER] ?? metadata.name}`,
    };
  }
  const { namespace, name } = spec.kubeconfigSecretRef;
  return {
    remedy:
      'have the provider run `tributary tenant-kubeconfig` again, put what it prints into FILE, and replace the Secret',
    run: `kubectl -n ${namespace} create secret generic ${name} --from-file=kubeconfig=FILE --dry-run=client -o yaml | kubectl replace -f -`,
  };
}

/** In milliseconds since 1970. */
function endOf({ metadata, certificate }: SecretFacts): number | undefined {
  const told = Date.parse(metadata.annotations?.[ANNOTATION_EXPIRES] ?? '');
  return certificate === undefined ? (Number.isNaN(told) ? undefined : told) : endOfPem(certificate);
}

function endOfPem(pem: string): number | undefined {
  try {
    return Date.parse(new X509Certificate(pem).validTo);
  } catch {
    return undefined;
  }
}

function webhook(findings: Findings, secrets: readonly SecretFacts[], { lists, now }: Facts): void {
  const configuration = itemsOf(lists.webhooks).find(
    ({ metadata }) => metadata.name === WEBHOOK_CONFIGURATION,
  );
  const secret = secrets.find(({ metadata }) => metadata.name === WEBHOOK_SERVICE);
  const serving = secret?.certificate === undefined ? undefined : endOfPem(secret.certificate);
  const trusted = configuration?.webhooks
    ?.map(({ clientConfig }) => clientConfig.caBundle ?? '')
    .find((text) => text !== '');
  const authority = trusted === undefined ? undefined : endOfPem(Buffer.from(trusted, 'base64').toString());
  const ends = [serving, authority].filter((end) => end !== undefined);
  if (ends.length === 0) return;
  const end = Math.min(...ends);
  const tried = `certificate of the admission webhook (Secret ${WEBHOOK_SERVICE})`;
  const said = {
    tried,
    cameBack: `${end <= now ? 'expired at' : 'valid until'} ${new Date(end).toISOString()}`,
  };
  const cure: Cure = {
    remedy: 'the role cluster renews it as long as it runs. This makes a new one',
    run: `kubectl -n tributary-system delete secret ${WEBHOOK_SERVICE}; kubectl -n tributary-system rollout restart deployment/tributary-cluster`,
  };
  if (end <= now) findings.problem(THIS_CLUSTER, said, cure);
  else if (end - now < SOON_MS) findings.warn(THIS_CLUSTER, said, cure);
  else findings.ok(THIS_CLUSTER, said);
}
