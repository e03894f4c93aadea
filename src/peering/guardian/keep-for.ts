import type { KubeObject } from '../../api/wire.ts';
import { ANNOTATION_KEEP_FOR } from '../tenant-annotations.ts';

/** Ten years. */
const MOST_SECONDS = 315_360_000;

/** How long pods in this namespace outlive their home, milliseconds; for ever, where nobody says anything that can be read. */
export function keepForMs({ metadata }: KubeObject): number {
  const said = metadata.annotations?.[ANNOTATION_KEEP_FOR] ?? '';
  return /^[0-9]{1,15}$/.test(said) ? Math.min(Number(said), MOST_SECONDS) * 1000 : Infinity;
}
