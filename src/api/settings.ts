/**
 * The ConfigMap by which people change, at run time, what holds for all parts of the program in a cluster. It is in the
 * system namespace, and each part reads it; none writes it.
 */
import { LOG_LEVELS, type LogLevel } from '../lib/log.ts';

export const SETTINGS_CONFIG_MAP = 'tributary-settings';
/** Its key for the level of logs: one of LOG_LEVELS. Absent: each part keeps the level that it was started with. */
export const SETTING_LOG_LEVEL = 'logLevel';

/** What the ConfigMap says of the level. What is not a level counts as nothing said, and comes back to be complained of. */
export function readLogLevel(data: Readonly<Record<string, string>> = {}): {
  level?: LogLevel;
  wrong?: string;
} {
  const text = data[SETTING_LOG_LEVEL]?.trim().toLowerCase() ?? '';
  if (text === '') return {};
  const level = LOG_LEVELS.find((known) => known === text);
  return level === undefined ? { wrong: data[SETTING_LOG_LEVEL] ?? '' } : { level };
}
