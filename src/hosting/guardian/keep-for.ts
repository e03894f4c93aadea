import type { KubeObject } from '../../api/wire.ts';
import { ANNOTATION_KEEP_FOR } from '../tenants/annotations.ts';

/** Ten years. */
const MOST_SECONDS = 315_360_000;

/**
 * How long pods in this namespace are kept after their home has gone away, milliseconds. Without the annotation, or where it
 * cannot be read, they are kept for ever.
 */
export function keepForMs({ metadata }: KubeObject): number {
  const said = metadata.annotations?.[ANNOTATION_KEEP_FOR] ?? '';
  return /^[0-9]{1,15}$/.test(said) ? Math.min(Number(said), MOST_SECONDS) * 1000 : Infinity;
}
