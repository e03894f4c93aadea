/** The campaign's command line. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

import { planOf, type RunPlan } from './plan.ts';
import type { SuiteOptions } from './suite.ts';

export interface FaultsOptions extends Omit<SuiteOptions, 'edits' | 'progress' | 'onResult' | 'isOver'> {
  readonly isPlanted: boolean;
}

const SEEDS = 2 ** 31;

/** Throws an error of one line if the arguments are not right. */
export function parseArguments(args: readonly string[]): FaultsOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string', default: '400' },
      'peer-runs': { type: 'string', default: '200' },
      seed: { type: 'string', default: String(randomInt(1, SEEDS)) },
      run: { type: 'string', default: '' },
      lanes: { type: 'string', default: '4' },
      stride: { type: 'string' },
      'peer-stride': { type: 'string', default: '5' },
      checkout: { type: 'string' },
      planted: { type: 'boolean', default: false },
      patience: { type: 'string' },
      lab: { type: 'string', default: 'faults' },
    },
  });
  const { lab, checkout, planted } = values;
  // What planted bugs leave behind never comes to rest; and not all of them show after a kill.
  const { stride = planted ? '8' : '1', patience = planted ? '15' : '120' } = values;
  return {
    lab,
    podRuns: whole('runs', values.runs, 0),
    peerRuns: whole('peer-runs', values['peer-runs'], 0),
    seed: whole('seed', values.seed, 1),
    only: plansOf(values.run),
    lanes: whole('lanes', values.lanes, 1),
    podStride: whole('stride', stride, 1),
    peerStride: whole('peer-stride', values['peer-stride'], 1),
    checkout,
    patienceSeconds: whole('patience', patience, 1),
    isPlanted: planted,
  };
}

function whole(name: string, text: string, least: number): number {
  const number = Number(text);
  if (text === '' || !Number.isInteger(number) || number < least || number >= SEEDS)
    throw new Error(`--${name} is a whole number from ${least} on, not "${text}"`);
  return number;
}

const plansOf = (names: string): RunPlan[] =>
  names
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const plan = planOf(name);
      if (plan === undefined) throw new Error(`--run: there is no run "${name}"; see faults/README.md`);
      return plan;
    });
