import { OFFLOADED_REASONS } from '../../api/names.ts';
import type { Pod } from '../../api/wire.ts';
import { asksClusterDns } from '../forge/dns.ts';
import { podReferences, type Reference } from '../forge/references.ts';
import type { HomeDnsWay } from '../home-dns.ts';
import type { Note, ReferenceState } from '../pods/decide.ts';
import type { PolicyStates } from '../policy-states.ts';
import type { Storage } from '../storage/storage.ts';
import type { Reflector } from './reflector.ts';
import type { TokenReconciler } from './tokens.ts';

/**
 * Where everything stands that the pod needs over there before it may be made. Claims come first: where a pod may go that finds no
 * place here depends on its volumes, so a refusal for another reason also says that they are over there.
 */
export function referenceState(home: Pod, parts: Parts): ReferenceState {
  const claims = parts.storage.state(home);
  const others = stateWithoutClaims(home, parts);
  return claims === 'pending'
    ? { ...others, refused: [], pending: true }
    : { ...others, refused: [...claims, ...others.refused] };
}

interface Parts {
  reflector: Reflector;
  tokens: TokenReconciler;
  storage: Pick<Storage, 'state'>;
  homeDns: HomeDnsWay;
  policies: Pick<PolicyStates, 'obstacle'>;
}

function stateWithoutClaims(
  home: Pod,
  { reflector, tokens, homeDns, policies }: Omit<Parts, 'storage'>,
): ReferenceState {
  const token = tokens.state(home);
  const state: ReferenceState & { missing: unknown[]; refused: unknown[]; notes: unknown[] } = {
    notes: [],
    missing: [],
    refused: typeof token === 'object' ? [token] : [],
    pending: token === 'pending',
  };
  if (homeDns.kind === 'Unknown' && asksClusterDns(home)) {
    state.refused.push({ reason: OFFLOADED_REASONS.missingReference, message: homeDns.message });
  }
  const obstacle = policies.obstacle(home);
  if (obstacle !== undefined) state.refused.push(obstacle);
  for (const reference of podReferences(home)) {
    const copy = reflector.state(reference.kind, reference.name, home);
    if (copy === 'pending') state.pending = true;
    if (typeof copy === 'object' && !('withheld' in copy && reference.optional)) state.refused.push(copy);
    if (copy === 'missing' && !reference.optional) state.missing.push(reference);
    const note = noteOf(reference, copy);
    if (note !== undefined) state.notes.push(note);
  }
  return state;
}

/**
 * What virtual-kubelet says of an object that it has not (node/env.go). Of an optional one it speaks where a container misses
 * a variable; that an optional volume is empty is as its owner meant it.
 */
function noteOf(
  { kind, name, optional, usage, user }: Reference,
  copy: ReturnType<Reflector['state']>,
): Note | undefined {
  if (optional && usage !== 'environment') return undefined;
  const what = `${kind.toLowerCase()} "${name}"`;
  const said = (why: string): string =>
    optional ? `container "${user}" goes without optional variables: ${why}` : why;
  const weight = optional ? 'Optional' : 'Mandatory';
  if (copy === 'missing') return { reason: `${weight}${kind}NotFound`, message: said(`${what} not found`) };
  if (typeof copy === 'string') return undefined;
  return { reason: `FailedToRead${weight}${kind}`, message: said(copy.message) };
}
