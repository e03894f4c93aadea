import type { ClusterMode, Mode, ModePhase } from '../../../src/api/cluster-mode.ts';

const PHASES: Record<Mode, ReadonlySet<ModePhase>> = {
  Tethered: new Set<ModePhase>(['Tethered']),
  Autonomous: new Set<ModePhase>(['Autonomous', 'Entering', 'Refused', 'Lost', 'Ending']),
};

/**
 * In what a ClusterMode contradicts itself. Every state that is stored must say one mode or the other, with a phase and a condition
 * that fit; only one that nobody has looked at yet says nothing.
 */
export function whatIsTorn({ metadata, status }: ClusterMode): string[] {
  if (status === undefined) return [];
  const { mode, phase, tether, nodes = [], conditions = [] } = status;
  const at = `at version ${metadata.resourceVersion}: ${JSON.stringify(status)}`;
  if (mode === undefined || phase === undefined) return [`no mode or no phase ${at}`];
  const condition = conditions.find(({ type }) => type === 'Tethered')?.status;
  return [
    ...(PHASES[mode].has(phase) ? [] : [`a phase of the other mode ${at}`]),
    ...(condition === (mode === 'Tethered' ? 'True' : 'False')
      ? []
      : [`a condition of the other mode ${at}`]),
    // Guards would forbid every node, or let all of them be changed for nobody.
    ...(mode === 'Tethered' && (tether === undefined || nodes.length === 0)
      ? [`tethered to nobody, or without a node ${at}`]
      : []),
  ];
}
