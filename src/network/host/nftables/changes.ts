/**
 * The way from a table as it is to the table as wanted: one script for `nft -f -`, which the kernel takes as a whole or not at
 * all. In the script, what others refer to is made first and removed last. Chains come before sets although they do not
 * refer to each other: nft 1.0.6 sends elements of intervals together with their new set, wherever they are written.
 */
import { isIP } from 'node:net';

import { TributaryError } from '../../../lib/errors.ts';
import type { ChainConfig, SetConfig, TableConfig } from '../host-config.ts';
import { type Element, type Elements, elementsOf } from './element.ts';
import { Recent } from './recent.ts';
import { shapeOf, type TableState } from './state.ts';
import { checkName, checkType, mark, ruleText, type RuleText } from './syntax.ts';

export interface Changes {
  /** Chains, sets and elements. */
  count: number;
  /** Empty: nothing to do. */
  script: string;
}

interface WantedChain {
  /** `type hook priority policy`, as in ChainState. */
  hook: string;
  declaration: string;
  rules: RuleText[];
}

interface WantedSet {
  comment: string;
  /** As in SetState. */
  shape: string;
  declaration: string;
  elements: Elements;
}

/** A checked and rendered TableConfig. */
export interface TableWish {
  name: string;
  chains: ReadonlyMap<string, WantedChain>;
  sets: ReadonlyMap<string, WantedSet>;
}

/** @throws Invalid where a text is not what nft should read. */
export function wishFor(name: string, config: TableConfig): TableWish {
  checkName(name);
  const texts = textsOf(name);
  const chains = new Map(config.chains.map((chain) => [checkName(chain.name), chainOf(chain, texts)]));
  const sets = new Map(config.sets.map((set) => [checkName(set.name), setOf(set, texts)]));
  if (chains.size !== config.chains.length || sets.size !== config.sets.length) {
    throw new TributaryError('Invalid', `nftables: table ${name} has two chains or two sets of one name`);
  }
  return { name, chains, sets };
}

/** Rules and elements as they were rendered last, by their text. */
interface Texts {
  rules: Recent<RuleText>;
  elements: Recent<[string, Element]>;
}
const rendered = new Map<string, Texts>();

/** Of a table, of which a process has one or two. */
function textsOf(table: string): Texts {
  const texts = rendered.get(table) ?? { rules: new Recent(), elements: new Recent() };
  rendered.set(table, texts);
  texts.rules.turn();
  texts.elements.turn();
  return texts;
}

function chainOf({ hook, rules }: ChainConfig, recent: Texts): WantedChain {
  const texts = rules.map((rule) => recent.rules.of(rule, () => ruleText(rule)));
  if (hook === undefined) return { hook: '', declaration: '', rules: texts };
  const priority = Math.trunc(hook.priority);
  const type = checkType(hook.type);
  const where = checkType(hook.hook);
  const declaration = ` { type ${type} hook ${where} priority ${priority}; policy accept; }`;
  return { hook: `${type} ${where} ${priority} accept`, declaration, rules: texts };
}

function setOf(config: SetConfig, { elements: recent }: Texts): WantedSet {
  const { type, value, interval } = config;
  checkType(type);
  if (value !== undefined) checkType(value);
  const plain = elementsOf(config, recent);
  const values = value === undefined ? '' : valueType(value, plain);
  const elements = values.startsWith('interval ') ? withPrefixes(plain) : plain;
  const types = value === undefined ? type : `${type} : ${values}`;
  const definition = `type ${types};${interval ? ' flags interval;' : ''}`;
  const comment = mark(definition);
  const kind = value === undefined ? 'set' : 'map';
  // The list does not say whether values are prefixes; the comment tells.
  const shape = shapeOf(type, (value ?? '').replace(/^interval /, ''), interval);
  return { comment, shape, declaration: `${kind} { ${definition} comment "${comment}"; }`, elements };
}

/** A map whose values are prefixes needs `interval`. */
function valueType(value: string, elements: Elements): string {
  if (value.startsWith('interval ') || value === 'verdict') return value;
  return [...elements.values()].some(({ text }) => text.includes('/', text.indexOf(' : ')))
    ? `interval ${value}`
    : value;
}

/** A map of intervals refuses single addresses as values. */
function withPrefixes(elements: Elements): Elements {
  const asPrefix = ({ key, value, text }: Element): Element => {
    const [, address = ''] = text.split(' : ');
    if (isIP(address) === 0) return { key, value, text };
    return { key, value, text: `${key} : ${address}/${isIP(address) === 4 ? 32 : 128}` };
  };
  return new Map([...elements].map(([key, element]) => [key, asPrefix(element)]));
}

/** The table as it is read back once the wish is fulfilled. */
export const stateWith = (wish: TableWish): TableState => ({
  chains: new Map(
    [...wish.chains].map(([name, { hook, rules }]) => [
      name,
      { hook, rules: rules.map(({ comment }) => comment) },
    ]),
  ),
  sets: wish.sets,
  foreign: false,
});

/** The changes from what is there to the wish. `state` is undefined where there is no table. */
export function changesTo(wish: TableWish, state: TableState | undefined): Changes {
  if (state === undefined || state.foreign || isRedefined(wish, state)) return wholeTable(wish);
  const changed = [...wish.chains].filter(
    ([name, chain]) => !sameRules(chain, state.chains.get(name)?.rules),
  );
  const added = [...wish.chains].filter(([name]) => !state.chains.has(name));
  const goneChains = [...state.chains.keys()].filter((name) => !wish.chains.has(name));
  const goneSets = [...state.sets.keys()].filter((name) => !wish.sets.has(name));
  const newSets = [...wish.sets].filter(([name]) => !state.sets.has(name));
  const { count, removals, additions } = elementChanges(wish, state);
  const flushed = [...changed.map(([name]) => name).filter((name) => state.chains.has(name)), ...goneChains];
  const lines = [
    ...added.map(([name, chain]) => addChain(wish.name, name, chain)),
    ...newSets.map(([name, set]) => addSet(wish.name, name, set)),
    ...flushed.map((name) => `flush chain inet ${wish.name} ${name}`),
    ...removals,
    ...goneSets.map((name) => `delete set inet ${wish.name} ${name}`),
    ...goneChains.map((name) => `delete chain inet ${wish.name} ${name}`),
    ...additions,
    ...changed.flatMap(([name, chain]) => addRules(wish.name, name, chain)),
  ];
  const chains = new Set([...changed, ...added].map(([name]) => name)).size;
  const total = count + chains + newSets.length + goneSets.length + goneChains.length;
  return { count: total, script: scriptOf(lines) };
}

const scriptOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

/** Definitions cannot be changed while rules refer to them. Then the whole table is replaced, in one transaction as well. */
function isRedefined(wish: TableWish, state: TableState): boolean {
  for (const [name, { hook }] of wish.chains) {
    if ((state.chains.get(name)?.hook ?? hook) !== hook) return true;
  }
  for (const [name, { comment, shape }] of wish.sets) {
    const there = state.sets.get(name);
    if (there !== undefined && (there.comment !== comment || there.shape !== shape)) return true;
  }
  return false;
}

function wholeTable(wish: TableWish): Changes {
  const { name, chains, sets } = wish;
  let count = 1 + chains.size + sets.size;
  for (const { elements } of sets.values()) count += elements.size;
  const lines = [
    // To delete a table that is not there is an error. To add one that is there is not.
    `add table inet ${name}`,
    `delete table inet ${name}`,
    `add table inet ${name}`,
    ...[...chains].map(([chain, config]) => addChain(name, chain, config)),
    ...[...sets].map(([set, config]) => addSet(name, set, config)),
    ...[...sets].flatMap(([set, { elements }]) =>
      elementLine(
        'add',
        `${name} ${set}`,
        [...elements.values()].map(({ text }) => text),
      ),
    ),
    ...[...chains].flatMap(([chain, config]) => addRules(name, chain, config)),
  ];
  return { count, script: scriptOf(lines) };
}

const sameRules = (chain: WantedChain, comments: readonly string[] | undefined): boolean =>
  comments?.length === chain.rules.length &&
  chain.rules.every(({ comment }, index) => comment === comments[index]);

const addSet = (table: string, name: string, { declaration }: WantedSet): string =>
  `add ${declaration.replace(' ', ` inet ${table} ${name} `)}`;

const addChain = (table: string, name: string, { declaration }: WantedChain): string =>
  `add chain inet ${table} ${name}${declaration}`;

const addRules = (table: string, name: string, { rules }: WantedChain): string[] =>
  rules.map(({ statement, comment }) => `add rule inet ${table} ${name} ${statement} comment "${comment}"`);

function elementLine(verb: 'add' | 'delete', where: string, texts: readonly string[]): string[] {
  return texts.length === 0 ? [] : [`${verb} element inet ${where} { ${texts.join(', ')} }`];
}

interface ElementChanges {
  count: number;
  removals: string[];
  additions: string[];
}

/** Removals come first: an interval may take the place of others. */
function elementChanges(wish: TableWish, state: TableState): ElementChanges {
  let count = 0;
  const removals: string[] = [];
  const additions: string[] = [];
  for (const [name, { elements }] of wish.sets) {
    const there = state.sets.get(name)?.elements ?? new Map();
    const where = `${wish.name} ${name}`;
    const gone = [...there].filter(([key, { value }]) => elements.get(key)?.value !== value);
    const fresh = [...elements].filter(([key, { value }]) => there.get(key)?.value !== value);
    count += new Set([...gone, ...fresh].map(([key]) => key)).size;
    removals.push(
      ...elementLine(
        'delete',
        where,
        gone.map(([, { key }]) => key),
      ),
    );
    additions.push(
      ...elementLine(
        'add',
        where,
        fresh.map(([, { text }]) => text),
      ),
    );
  }
  return { count, removals, additions };
}
