import { isFinished } from '../../api/pod.ts';
import type { Container, Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { appliedOf, readApplied } from './applied.ts';
import type { ForgeContext } from './context.ts';
import { isResult } from './made-anew.ts';
import { forgePod } from './pod.ts';
import { hasFixedToken, mountedTokens, namedLikeBody, tokenSecretName, withTokensOf } from './tokens.ts';

/**
 * Whether the remote pod of another home pod, of the same name, is what would be made for this one: it then serves it as well, and
 * need not end. What the foreign cluster's admission has added does not count. A pod that knows its UID is another one. Tokens are
 * bound to the UID, too, but are renewed in the Secret that the body mounts (reflect/tokens.ts); not so where a file of one is
 * mounted alone. Pure.
 */
export function isBodyFor(home: Pod, remote: Pod, context: ForgeContext): boolean {
  const isAlive = remote.metadata.deletionTimestamp === undefined && !isFinished(remote) && !isResult(remote);
  if (!isAlive || isFinished(home) || home.metadata.deletionTimestamp !== undefined) return false;
  const [wanted, given] = [appliedOf(home), readApplied(remote)];
  if (given === undefined || given.digest !== wanted.digest || !deepEqual(given.images, wanted.images))
    return false;
  return !hasFixedToken(home) && isWithin(wantedSpec(home, remote, context), remote.spec);
}

/** What would be made now, by the names that the remote pod has for volumes and Secrets. */
function wantedSpec(home: Pod, remote: Pod, context: ForgeContext): unknown {
  const { spec } = forgePod(namedLikeBody(home, remote), context);
  const own = tokenSecretName(home.metadata.uid);
  return {
    ...spec,
    ...imageless(spec?.containers, spec?.initContainers),
    volumes: withTokensOf(spec?.volumes ?? [], own, mountedTokens(remote)?.secret ?? own),
  };
}

/** What was asked for is compared instead: the foreign cluster may name its images otherwise. */
function imageless(
  containers: readonly Container[] = [],
  initContainers?: readonly Container[],
): Record<string, unknown> {
  const without = (list: readonly Container[]): unknown[] => list.map(({ image: _image, ...rest }) => rest);
  return {
    containers: without(containers),
    ...(initContainers && { initContainers: without(initContainers) }),
  };
}

/** Whether all of `wanted` is in `actual`. Of a list each element has to be there, wherever. */
function isWithin(wanted: unknown, actual: unknown): boolean {
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = Array.isArray(actual) ? actual : [];
    return wanted.every((one) => list.some((other) => isWithin(one, other)));
  }
  if (typeof wanted !== 'object' || wanted === null) return wanted === undefined || wanted === actual;
  const entries = Object.entries(wanted);
  if (typeof actual !== 'object' || actual === null) return entries.length === 0 && actual === undefined;
  return entries.every(([key, value]) => isWithin(value, (actual as Record<string, unknown>)[key]));
}
