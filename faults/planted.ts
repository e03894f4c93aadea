/** Mistakes that the suite must find: edits of the program, and by what each betrays itself. Each needs a fault to show. */
import type { Violation } from './auditor-process.ts';
import type { Edit } from '../lab/compiled-program.ts';

export interface PlantedBug {
  readonly name: string;
  readonly what: string;
  readonly edits: readonly Edit[];
  /** Whether a violation is what this mistake leads to, and none of the others. */
  readonly shows: (violation: Violation) => boolean;
}

const DECIDE = 'src/provider/pods/decide.ts';

export const PLANTED: readonly PlantedBug[] = [
  {
    name: 'believes-its-cache',
    what: 'a pod that the cache lacks counts as lost, without a live read',
    edits: [
      {
        file: 'src/provider/pods/reconciler.ts',
        find: 'const remote = await this.#remotes.live(tenantNamespace, home.metadata.name, signal);',
        replace: 'const remote = undefined as Pod | undefined;',
      },
    ],
    shows: ({ invariant, what }) => invariant === 'I4' && what.includes('RemotePodLost'),
  },
  {
    name: 'runs-the-dead',
    what: 'a pod that has ended gets another body when its body is gone',
    edits: [
      {
        file: DECIDE,
        find: 'if (remote === undefined || !contact || isFinished(remote) || isResult(remote)) return NOTHING;',
        replace: `if (remote === undefined && contact && situation.context !== undefined)
          return { do: 'create', home, pod: forgePod(home, situation.context), notes: [] };
        if (remote === undefined || !contact || isFinished(remote) || isResult(remote)) return NOTHING;`,
      },
    ],
    shows: ({ invariant }) => invariant === 'I3',
  },
  {
    name: 'hears-events-only',
    what: 'a body whose home pod went while the agent was dead stays for ever',
    edits: [
      {
        file: DECIDE,
        find: 'export function decide(situation: Situation): Action {',
        replace: `const heardOf = new Set<string>();
        export function decide(situation: Situation): Action {
          if (situation.home !== undefined) heardOf.add(situation.home.metadata.uid);`,
      },
      {
        file: DECIDE,
        find: 'if (home === undefined) return remote === undefined || !contact ? NOTHING : collect(remote);',
        replace: `if (home === undefined)
          return remote === undefined || !contact || !heardOf.has(remote.metadata.labels?.[LABEL_HOME_UID] ?? '')
            ? NOTHING
            : collect(remote);`,
      },
    ],
    shows: ({ invariant }) => invariant === 'I2',
  },
];
