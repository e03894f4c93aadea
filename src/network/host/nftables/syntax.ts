/**
 * What may be written into a script for `nft`. Everything is checked here once more, whatever its origin: a line break,
 * a semicolon, a quote or a brace out of place would let a name or a prefix become a command of its own.
 */
import { hash } from 'node:crypto';

import { TributaryError } from '../../../lib/errors.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,119}$/;
const TYPE = /^(?:interval )?[a-z][a-z0-9_]*(?: \. [a-z][a-z0-9_]*){0,4}$/;
/** An address, a prefix, a range, a number, a word, or the quoted name of an interface. */
const ATOM = /^(?:[A-Za-z0-9][A-Za-z0-9_.:/-]*|::[A-Za-z0-9_.:/-]*|"[A-Za-z0-9_.:@-]{1,15}")$/;
const LONGEST_KEY = 400;
const VERDICT = /^(?:accept|drop|continue|return)$/;
const JUMP = /^(jump|goto) (\S+)$/;
/** Statements with variables, further commands, comments or escapes are not among them. */
const RULE = /^[a-z@][A-Za-z0-9 _.,:@/"{}()[\]=!<>&|^*+-]*$/;
const QUOTED = /"[A-Za-z0-9_.:@* -]{0,120}"/g;
const LABEL = /^(.*\S) comment "([A-Za-z0-9_.:@-]{1,64})"$/;

function refuse(what: string, text: string): never {
  throw new TributaryError('Invalid', `nftables: ${JSON.stringify(text.slice(0, 80))} is not ${what}`);
}

export const isName = (name: string): boolean => NAME.test(name);

export function checkName(name: string): string {
  return isName(name) ? name : refuse('a name', name);
}

export function checkType(type: string): string {
  return TYPE.test(type) ? type : refuse('a type', type);
}

/** Checks a key and returns its fields. */
export function checkKey(key: string): string[] {
  const fields = key.split(' . ');
  return key.length <= LONGEST_KEY && fields.every((field) => ATOM.test(field))
    ? fields
    : refuse('a key', key);
}

export function checkValue(value: string): string {
  if (VERDICT.test(value)) return value;
  const chain = JUMP.exec(value)?.[2];
  if (chain === undefined) checkKey(value);
  else checkName(chain);
  return value;
}

export const isVerdict = (value: string): boolean => VERDICT.test(value) || JUMP.test(value);

export interface RuleText {
  statement: string;
  /** `t:HASH`, then the comment that the rule was written with, by which its counter is known. */
  comment: string;
}

/** The rule's own comment moves into ours: a rule has only one. */
export function ruleText(rule: string): RuleText {
  if (!RULE.test(rule) || !isBalanced(rule)) refuse('a rule', rule);
  const [, statement = rule, label] = LABEL.exec(rule) ?? [];
  if (/\bcomment "/.test(statement)) refuse('a rule with one comment at its end', rule);
  return { statement, comment: label === undefined ? mark(rule) : `${mark(rule)} ${label}` };
}

/** Braces open before they close and are not nested. Quotes hold plain words. */
function isBalanced(rule: string): boolean {
  const plain = rule.replaceAll(QUOTED, 'quoted');
  return !plain.includes('"') && /^[^{}]*(?:\{[^{}]*\}[^{}]*)*$/.test(plain);
}

const LABELLED = /^t:[0-9a-f]{12} (.+)$/;

/** The name of a rule's counter. Undefined where the rule was written without a comment. */
export const labelOf = (comment: string): string | undefined => LABELLED.exec(comment)?.[1];

/** nft prints rules in a form of its own, so rules are compared by this mark. */
export const mark = (text: string): string => `t:${hash('sha256', text, 'hex').slice(0, 12)}`;
