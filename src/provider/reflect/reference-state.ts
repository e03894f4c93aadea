import type { Pod } from '../../api/wire.ts';
import { podReferences } from '../forge/references.ts';
import type { ReferenceState } from '../pods/decide.ts';
import type { Storage } from '../storage/storage.ts';
import type { Reflector } from './reflector.ts';
import type { TokenReconciler } from './tokens.ts';

/** Where everything stands that the pod needs over there before it may be made. */
export function referenceState(
  home: Pod,
  {
    reflector,
    tokens,
    storage,
  }: { reflector: Reflector; tokens: TokenReconciler; storage: Pick<Storage, 'state'> },
): ReferenceState {
  const token = tokens.state(home);
  const state: ReferenceState & { missing: unknown[]; refused: unknown[] } = {
    missing: [],
    refused: typeof token === 'object' ? [token] : [],
    pending: token === 'pending',
  };
  const claims = storage.state(home);
  if (claims === 'pending') state.pending = true;
  else state.refused.push(...claims);
  for (const reference of podReferences(home)) {
    const copy = reflector.state(reference.kind, reference.name, home);
    if (copy === 'pending') state.pending = true;
    if (typeof copy === 'object' && !('withheld' in copy && reference.optional)) state.refused.push(copy);
    if (copy === 'missing' && !reference.optional) state.missing.push(reference);
  }
  return state;
}
