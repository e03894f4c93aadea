/** The end of a run: waits until all is settled, and checks everything. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Auditor } from './auditor.ts';
import { ReadError } from './api-reader.ts';
import { bodyDifferences, bodyFaults, liveSouls, presentBodies } from './checks/bodies.ts';
import { copyDifferences } from './checks/copies.ts';
import { bodyChanges, endDifferences, endFaults } from './checks/lives.ts';
import { processFaults } from './checks/processes.ts';
import { quietFaults } from './checks/quiet.ts';
import { shownDifferences, shownFaults } from './checks/shown.ts';
import { strangerFaults } from './checks/strangers.ts';
import { translationFaults } from './checks/translation.ts';
import { last, type Run } from './history.ts';
import { rulesetOf } from './host-reader.ts';
import { type Invariant, type Unjudged, type Violation, now } from './violation.ts';
import { copiesNow, writtenNow } from './written.ts';

const LOOK_MS = 200;
/** For a server that is away just when all is read. */
const READ_MS = 10_000;

export interface Verdict {
  /** From the request until nothing was left to do, or until the bound. */
  readonly seconds: number;
  /** `refused`: home pods of which home says that they do not run over there, and why. */
  readonly pods: { readonly home: number; readonly remote: number; readonly refused: number };
  readonly violations: readonly Violation[];
  /** What could not be read, so that it is not known. */
  readonly unjudged: readonly Unjudged[];
}

interface Parts {
  readonly violations: Violation[];
  readonly unjudged: Unjudged[];
}

const differences = (run: Run): Violation[] => [
  ...bodyDifferences(run),
  ...endDifferences(run),
  ...shownDifferences(run),
];

export async function settle(auditor: Auditor): Promise<Verdict> {
  const began = now();
  const end = await settled(auditor, began + auditor.config.bounds.settleSeconds * 1000);
  const seconds = Math.round((end.at - began) / 100) / 10;
  const rest = await Promise.all([strangers(auditor), secrets(auditor), translations(auditor)]);
  const run = auditor.run();
  auditor.processes.look();
  const violations = [
    ...end.violations,
    ...bodyFaults(run),
    ...endFaults(run),
    ...shownFaults(run),
    ...bodyChanges(run),
    ...rest.flatMap((part) => part.violations),
    // All that was read has been searched by now.
    ...auditor.secrets.violations(),
    ...processFaults(auditor.processes.all),
  ];
  const souls = liveSouls(run);
  return {
    seconds,
    pods: {
      home: souls.length,
      remote: presentBodies(run).length,
      refused: souls.filter(({ life }) => last(life).pod.isRefused).length,
    },
    violations: byInvariant(violations),
    unjudged: [...end.unjudged, ...rest.flatMap((part) => part.unjudged)],
  };
}

function byInvariant(violations: readonly Violation[]): Violation[] {
  const once = new Map(violations.map((one) => [one.what, one]));
  return [...once.values()].toSorted((a, b) => Number(a.invariant.slice(1)) - Number(b.invariant.slice(1)));
}

type End = Parts & { at: number };

/** Until no difference is left and nothing is written for a while; at the deadline, what is left counts. */
async function settled(auditor: Auditor, deadline: number): Promise<End> {
  for (;;) {
    const problem = await problemOf(auditor);
    const isLate = now() > deadline;
    if (problem !== undefined && isLate) {
      const all: Invariant[] = ['I1', 'I2', 'I7'];
      const unjudged = all.map((invariant) => ({ invariant, why: problem }));
      return { at: now(), violations: [], unjudged };
    }
    if (problem === undefined && (isLate || differences(auditor.run()).length === 0)) {
      const end = await quiet(auditor);
      if (end.violations.length + end.unjudged.length === 0 || now() > deadline) return end;
    }
    await sleep(LOOK_MS);
  }
}

/** Why it is not known what is there; undefined: live reads show what the watches have told. */
async function problemOf(auditor: Auditor): Promise<string | undefined> {
  for (const recorder of auditor.recorders) {
    if (recorder.problem !== undefined) return recorder.problem;
    const isFresh = await unlessUnread(async () => recorder.isFresh());
    if (typeof isFresh === 'string') return isFresh;
    if (!isFresh) return `${recorder.reader.name}: its watches are behind what it stores`;
  }
  return undefined;
}

/** What was written within the quiet window, and what is left after it. */
async function quiet(auditor: Auditor): Promise<End> {
  const { quietSeconds } = auditor.config.bounds;
  const at = now();
  const writes = await unlessUnread(async () => {
    const before = await writtenNow(auditor.home.reader, auditor.pairings());
    await sleep(quietSeconds * 1000);
    const after = await writtenNow(auditor.home.reader, auditor.pairings());
    const copies = await copiesNow(auditor.home.reader, auditor.pairings());
    return [...quietFaults(before, after, quietSeconds), ...copyDifferences(copies)];
  });
  const left = differences(auditor.run());
  if (typeof writes !== 'string') return { at, violations: [...left, ...writes], unjudged: [] };
  return { at, violations: left, unjudged: [{ invariant: 'I7', why: writes }] };
}

async function unlessUnread<T>(read: () => Promise<T>): Promise<T | string> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ReadError) return error.message;
    throw error;
  }
}

/** I6, and with it what objects say of secrets (I8). */
async function strangers(auditor: Auditor): Promise<Parts> {
  const deadline = now() + READ_MS;
  let current = await unlessUnread(async () => auditor.snapshots());
  while (typeof current === 'string' && now() < deadline) {
    await sleep(LOOK_MS);
    current = await unlessUnread(async () => auditor.snapshots());
  }
  if (typeof current === 'string') {
    const why = current;
    return {
      violations: [],
      unjudged: [
        { invariant: 'I6', why },
        { invariant: 'I8', why },
      ],
    };
  }
  const ours = auditor.ours();
  const parts = current.map((after): Parts => {
    const before = auditor.snapshotBefore(after.cluster);
    if (before !== undefined) return { violations: strangerFaults(before, after, ours), unjudged: [] };
    const why = `${after.cluster} could not be read after it was restored`;
    return { violations: [], unjudged: [{ invariant: 'I6', why }] };
  });
  return {
    violations: parts.flatMap(({ violations }) => violations),
    unjudged: parts.flatMap(({ unjudged }) => unjudged),
  };
}

async function secrets({ secrets: search }: Auditor): Promise<Parts> {
  search.readProcesses();
  return { violations: [], unjudged: await search.readLogs() };
}

async function translations({ config }: Auditor): Promise<Parts> {
  const parts = await Promise.all(
    config.hosts.map(async (host): Promise<Parts> => {
      try {
        return { violations: translationFaults(host, await rulesetOf(host)), unjudged: [] };
      } catch (error) {
        return { violations: [], unjudged: [{ invariant: 'I9', why: `host ${host}: ${String(error)}` }] };
      }
    }),
  );
  return {
    violations: parts.flatMap(({ violations }) => violations),
    unjudged: parts.flatMap(({ unjudged }) => unjudged),
  };
}
