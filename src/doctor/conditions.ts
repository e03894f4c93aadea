import type { Condition } from '../api/wire.ts';

interface Conditioned {
  status?: { conditions?: Condition[] };
}

export const conditionOf = ({ status }: Conditioned, wanted: string): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === wanted);
