/** One line of our own logs, made readable. Pure. */
import { isFields } from '../../lib/fields.ts';
import { LOG_LEVELS, type LogLevel } from '../../lib/log.ts';
import type { Paint } from '../colours.ts';
import { printable } from '../peering/terminal-text.ts';

interface Reading {
  least: LogLevel;
  paint: Paint;
  /** As it was written. */
  isRaw: boolean;
}

/** Undefined: the line is below the level. What is not of ours (a crash, a library) is always shown. */
export function logLine(line: string, { least, paint, isRaw }: Reading): string | undefined {
  const fields = fieldsOf(line);
  if (fields === undefined) return printable(line);
  const { time, level, logger, message, ...more } = fields;
  if (LOG_LEVELS.indexOf(level as LogLevel) < LOG_LEVELS.indexOf(least)) return undefined;
  if (isRaw) return printable(line);
  const word = String(level).toUpperCase().padEnd(5);
  const coloured = level === 'error' ? paint('red', word) : level === 'warn' ? paint('yellow', word) : word;
  const rest = Object.entries(more).map(([key, value]) =>
    paint('dim', printable(`${key}=${valueText(value)}`)),
  );
  const name = String(logger).replace(/^tributary\.?/, '');
  const said = `${name === '' ? '' : `${name}: `}${String(message)}`;
  return [printable(String(time)), coloured, printable(said), ...rest].join(' ');
}

function fieldsOf(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    const isOurs = isFields(value) && LOG_LEVELS.includes(value['level'] as LogLevel) && 'message' in value;
    return isOurs ? value : undefined;
  } catch {
    return undefined;
  }
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return /^\S*$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? '';
}
