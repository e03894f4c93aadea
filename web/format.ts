/** Numbers and times as people read them. */
import { parseMilli } from '../src/lib/quantity.ts';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(count: number): string {
  let [value, unit] = [count, 0];
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit] ?? ''}`;
}

const STEPS: readonly [seconds: number, letter: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
];

export function ago(at: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(at)) / 1000));
  if (Number.isNaN(seconds)) return '';
  for (const [size, letter] of STEPS)
    if (seconds >= size) return `${Math.floor(seconds / size)} ${letter} ago`;
  return seconds < 10 ? 'now' : `${seconds} s ago`;
}

/** Of what was promised, in percent; undefined where either cannot be read. */
export function share(used: string | undefined, promised: string | undefined): number | undefined {
  if (used === undefined || promised === undefined) return undefined;
  try {
    const whole = parseMilli(promised);
    return whole <= 0n ? undefined : Math.min(100, Number((parseMilli(used) * 100n) / whole));
  } catch {
    return undefined;
  }
}

const NAMES: Readonly<Record<string, string>> = {
  cpu: 'CPU',
  memory: 'memory',
  pods: 'pods',
  'ephemeral-storage': 'disk',
  storage: 'volumes',
};

export const resourceName = (resource: string): string => NAMES[resource] ?? resource;

const ORDER = ['cpu', 'memory', 'pods'];

/** The three that matter first, then what is special about the offer. */
export function mainResources(resources: Record<string, string>): [string, string][] {
  const rest = Object.keys(resources).filter((name) => !(name in NAMES));
  return [...ORDER, ...rest]
    .slice(0, 6)
    .flatMap((name) => (resources[name] === undefined ? [] : [[name, resources[name]] as [string, string]]));
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
