/** What a command may write over: what somebody has set otherwise only when it is told so. */
import { deepEqual } from '../lib/equality.ts';
import type { Options } from './command.ts';

export const OVERWRITE: Options = { overwrite: { text: 'change what somebody has set otherwise' } };

/** Fields that are set to something else; those that nobody has set do not count. Pure. */
export const differing = <Spec extends object>(wanted: Partial<Spec>, now: Spec): (keyof Spec & string)[] =>
  (Object.keys(wanted) as (keyof Spec & string)[]).filter(
    (field) => now[field] !== undefined && !deepEqual(now[field], wanted[field]),
  );
