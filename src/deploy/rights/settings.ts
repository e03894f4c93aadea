import type { Right } from '../../api/rbac.ts';
import { SETTINGS_CONFIG_MAP } from '../../api/settings.ts';

/** Of every role and every agent, in tributary-system. */
export const SETTINGS_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    names: [SETTINGS_CONFIG_MAP],
    verbs: ['list', 'watch'],
    why: 'what people set for all parts at run time: the level of logs',
  },
];
