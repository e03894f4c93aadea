/** Which options the roles have, and what of them people read. */
import type { Role } from '../agent/roles.ts';
import { AGENT_OPTIONS } from '../config.ts';
import type { OptionSpec } from './spec.ts';

/** What `config.ts` says of an option: `ROLE, ROLE: text`, or `text` where it is an option of all roles. */
const TEXT = /^(?:([a-z]+(?:, [a-z]+)*): )?(.*)$/su;

/** An option of a role as one of the command line. */
export function roleOption(name: string): OptionSpec {
  const text = AGENT_OPTIONS[name];
  if (text === undefined) throw new Error(`no role has an option --${name}`);
  return { value: 'VALUE', text: TEXT.exec(text)?.[2] ?? text };
}

/** Role `all` has the options of all. */
export function isOptionOf(role: Role, name: string): boolean {
  if (!Object.hasOwn(AGENT_OPTIONS, name)) return false;
  const roles = TEXT.exec(AGENT_OPTIONS[name] ?? '')?.[1]?.split(', ');
  return roles === undefined || roles.includes(role) || role === 'all';
}

export const optionsOf = (role: Role): string[] =>
  Object.keys(AGENT_OPTIONS).filter((name) => isOptionOf(role, name));
