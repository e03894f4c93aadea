/** Follows the settings that people change at run time: the level of logs. Why so: docs/decisions/0058-log-level.md. */
import { configMaps } from '../api/resources.ts';
import { readLogLevel, SETTING_LOG_LEVEL, SETTINGS_CONFIG_MAP } from '../api/settings.ts';
import type { ConfigMap } from '../api/wire.ts';
import type { Caches } from '../kube/caches.ts';
import type { Component } from '../lib/lifecycle.ts';
import { LOG_LEVELS, type Logger, type LogSink } from '../lib/log.ts';
import type { AgentParts } from './parts.ts';

/** Its start waits for nothing: without the ConfigMap, or the right to read it, everything works as it was started. */
export function followSettings({ config, sink, log }: AgentParts, caches: Caches): Component {
  const cache = caches.of(configMaps, {
    name: 'settings',
    list: { namespace: config.systemNamespace, fieldSelector: `metadata.name=${SETTINGS_CONFIG_MAP}` },
  });
  const apply = levelSwitch(sink ?? { level: config.logLevel }, log.named('settings'));
  cache.onChange((_key, current) => apply(current));
  return {
    name: 'settings',
    start: (signal) => void cache.start(signal).catch(() => undefined),
    stop: async () => cache.stop(),
  };
}

/** The level of the moment in which this is called is the one at start. */
export function levelSwitch(
  sink: Pick<LogSink, 'level'>,
  log: Logger,
): (settings: Pick<ConfigMap, 'data'> | undefined) => void {
  const atStart = sink.level;
  let complained: string | undefined;
  return (settings) => {
    const { level, wrong } = readLogLevel(settings?.data);
    if (wrong !== undefined && wrong !== complained) {
      log.error('the settings name no level of logs, so the level at start counts', {
        configMap: SETTINGS_CONFIG_MAP,
        [SETTING_LOG_LEVEL]: wrong.slice(0, 64),
        levels: LOG_LEVELS.join(', '),
      });
    }
    complained = wrong;
    const [before, next] = [sink.level, level ?? atStart];
    if (next === before) return;
    const say = (): void =>
      log.info('the level of logs changes', {
        from: before,
        to: next,
        by: level === undefined ? 'start' : 'settings',
      });
    // On whichever side of the change more is written.
    const isMore = LOG_LEVELS.indexOf(next) < LOG_LEVELS.indexOf(before);
    if (!isMore) say();
    sink.level = next;
    if (isMore) say();
  };
}
