/** Whether a ConfigMap or Secret may go over there, by the rule of its namespace and by what it is. Pure. */
import { ANNOTATION_REFLECT, OFFLOADED_REASONS } from '../../api/names.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { type ReferenceKind, ROOT_CA_CONFIG_MAP } from '../forge/references.ts';
import type { Refusal } from '../pods/refusal.ts';
import { parsePath } from './field-paths.ts';
import { isSelected, type KindRule } from './rules.ts';

/** Why a referenced object stays home. For a pod that only names it as optional, it then does not exist. */
export interface StaysHome extends Refusal {
  withheld: true;
}

/** Types whose objects the API server ties to an account or a signer of its own. */
export const ACCOUNT_TOKEN_TYPE = 'kubernetes.io/service-account-token';
export const BOOTSTRAP_TOKEN_TYPE = 'bootstrap.kubernetes.io/token';
/** Mandatory on Secrets of ACCOUNT_TOKEN_TYPE (core/v1 validation), so metadata tells which might be one. */
const ANNOTATION_ACCOUNT = 'kubernetes.io/service-account.name';
const BOOTSTRAP_PREFIX = 'bootstrap-token-';

/** The certificate of the home cluster's own authority: public, mounted by every pod, and so not subject to policy. */
const isRootCa = (kind: ReferenceKind, name: string): boolean =>
  kind === 'ConfigMap' && name === ROOT_CA_CONFIG_MAP;

export const RESOURCES: Readonly<Record<ReferenceKind, string>> = {
  ConfigMap: 'configmaps',
  Secret: 'secrets',
};

/** Whether the object is to be over there. */
export function isWanted(
  kind: ReferenceKind,
  rule: Pick<KindRule, 'policy' | 'drop'>,
  { source, isReferenced }: { source: KubeObject; isReferenced: boolean },
): boolean {
  const { name } = source.metadata;
  if (isRootCa(kind, name)) return isReferenced;
  return staysHome(kind, rule, source) === undefined && isSelected(rule, source, isReferenced);
}

/** Why the object stays home even when pods refer to it; undefined when it need not. */
export function staysHome(
  kind: ReferenceKind,
  rule: Pick<KindRule, 'policy' | 'drop'>,
  source: KubeObject,
): StaysHome | undefined {
  const { name, annotations } = source.metadata;
  if (isRootCa(kind, name)) return undefined;
  const what = `${kind.toLowerCase()} "${name}" stays home`;
  const unreadable = rule.drop?.find((path) => !Array.isArray(parsePath(path)));
  // It is not known what to leave out: nothing leaves.
  if (unreadable !== undefined)
    return withheld(`${what}: its rule has the path "${unreadable}", which is none`);
  if (isSelected(rule, source, true)) return undefined;
  if (rule.policy !== 'None' && annotations?.[ANNOTATION_REFLECT] === 'false')
    return withheld(`${what}: its annotation ${ANNOTATION_REFLECT} says "false"`);
  const policy = `the policy of its namespace for ${RESOURCES[kind]} is ${rule.policy}`;
  return withheld(
    rule.policy === 'OptIn'
      ? `${what}: ${policy}, and it has no annotation ${ANNOTATION_REFLECT}: "true"`
      : `${what}: ${policy}`,
  );
}

/** Whether the object, by its metadata, may be of a type that does not travel like others. */
export function mayBeTied(kind: ReferenceKind, { metadata }: KubeObject): boolean {
  return (
    kind === 'Secret' &&
    (metadata.annotations?.[ANNOTATION_ACCOUNT] !== undefined || metadata.name.startsWith(BOOTSTRAP_PREFIX))
  );
}

/**
 * Whether a Secret of that type may go over there for these pods: an account's token only for one that runs as the
 * account, a bootstrap token never.
 */
export function mayTravelFor(type: string | undefined, source: KubeObject, users: Iterable<Pod>): boolean {
  if (type === BOOTSTRAP_TOKEN_TYPE) return false;
  if (type !== ACCOUNT_TOKEN_TYPE) return true;
  const account = source.metadata.annotations?.[ANNOTATION_ACCOUNT];
  return Iterator.from(users).some((pod) => accountOf(pod) === account);
}

/** Why the pod does not get the Secret, of that type; undefined when it does. */
export function refusedToPod(type: string | undefined, source: KubeObject, pod: Pod): Refusal | undefined {
  if (mayTravelFor(type, source, [pod])) return undefined;
  const what = `secret "${source.metadata.name}"`;
  const { missingReference: reason } = OFFLOADED_REASONS;
  if (type === BOOTSTRAP_TOKEN_TYPE)
    return { reason, message: `${what} is a bootstrap token: these never leave` };
  const account = source.metadata.annotations?.[ANNOTATION_ACCOUNT];
  return {
    reason,
    message:
      `${what} is a token of service account "${account}", and the pod runs as "${accountOf(pod)}": ` +
      'service-account tokens of others never leave',
  };
}

const accountOf = ({ spec }: Pod): string => spec?.serviceAccountName ?? 'default';

const withheld = (message: string): StaysHome => ({
  reason: OFFLOADED_REASONS.missingReference,
  message,
  withheld: true,
});
