/** Apart from what all commands share: a role prints none, and the library is large. */
import { stringify } from 'yaml';

/** kubectl reads YAML 1.1, in which `on`, `no` and 1:30 are no strings: those are quoted. */
const YAML_OPTIONS = { aliasDuplicateObjects: false, lineWidth: 110, compat: 'yaml-1.1' } as const;

/** One YAML document an object, in their order; equal parts are written out, since kubectl users edit this. */
export const printYaml = (objects: readonly object[]): string =>
  objects.map((object) => stringify(object, YAML_OPTIONS)).join('---\n');
