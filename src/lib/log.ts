import { UNSHOWN } from './untrusted.ts';

/** Fields of a log line. Never put a credential, a token or a Secret's data here. */
export type LogFields = Record<string, string | number | boolean | undefined>;

/**
 * A constant sentence plus fields, one JSON object a line. Grep for the sentence and you find the line of code.
 * Handed down and named, never global.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same sink under `parent.name`, with these fields on every line. */
  named(name: string, fields?: LogFields): Logger;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
/** With which every process starts that is not told another one. */
export const DEFAULT_LOG_LEVEL: LogLevel = 'info';

/** How many lines of each level were written. */
export type LineCounts = Record<LogLevel, number>;
export const noLines = (): LineCounts => ({ debug: 0, info: 0, warn: 0, error: 0 });

/** One for a whole process: who changes the level here changes that of all loggers at once. */
export interface LogSink {
  level: LogLevel;
  now: () => number;
  write: (line: string) => void;
  /** Counts each line that is written. */
  count?: (level: LogLevel) => void;
}

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

export function createLogger(sink: LogSink, name = 'tributary', fields: LogFields = {}): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, more: LogFields = {}): void => {
      if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(sink.level)) return;
      sink.count?.(level);
      const time = new Date(sink.now()).toISOString();
      const line = JSON.stringify({ time, level, logger: name, message, ...fields, ...more });
      sink.write(`${line.replaceAll(UNSHOWN, escaped)}\n`);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    named: (child, more = {}) => createLogger(sink, `${name}.${child}`, { ...fields, ...more }),
  };
}

/** Swallows everything; for tests of pure parts. */
export const silentLogger: Logger = createLogger({ level: 'error', now: () => 0, write: () => undefined });
