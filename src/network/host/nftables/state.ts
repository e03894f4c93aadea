/** A table as `nft -j list table` tells it (libnftables-json(5), schema version 1, as of nft 1.0.6). */
import { type Element, elementOf, type Elements } from './element.ts';
import { isName } from './syntax.ts';

export interface TableState {
  chains: ReadonlyMap<string, ChainState>;
  sets: ReadonlyMap<string, SetState>;
  /** The table holds something that we never make: it is not as we left it, and is made anew. */
  foreign: boolean;
}

export interface ChainState {
  /** `type hook priority policy` of base chains. */
  hook: string;
  /** The comments of its rules, in order. Empty for a rule without a comment. */
  rules: readonly string[];
}

export interface SetState {
  /** The comment, which holds the mark of its definition. */
  comment: string;
  /** What can be seen of its definition otherwise. */
  shape: string;
  elements: Elements;
}

type Json = Readonly<Record<string, unknown>>;

/** @throws SyntaxError (nft 1.0.6 prints broken JSON for tables with flags) and Invalid for keys that we never write. */
export function readTable(json: string): TableState {
  const { nftables } = JSON.parse(json) as { nftables: Json[] };
  const chains = new Map<string, ChainState>();
  const sets = new Map<string, SetState>();
  const rules = new Map<string, string[]>();
  let foreign = false;
  for (const entry of nftables) {
    const [kind = '', value] = Object.entries(entry)[0] ?? [];
    const object = value as Json;
    foreign ||= object['name'] !== undefined && !isName(textOf(object['name']));
    if (kind === 'chain') {
      const list: string[] = [];
      rules.set(textOf(object['name']), list);
      chains.set(textOf(object['name']), { hook: hookOf(object), rules: list });
    } else if (kind === 'set' || kind === 'map') sets.set(textOf(object['name']), setOf(object));
    else if (kind === 'rule') rules.get(textOf(object['chain']))?.push(textOf(object['comment']));
    else if (kind === 'table') foreign ||= object['flags'] !== undefined;
    else foreign ||= kind !== 'metainfo';
  }
  return { chains, sets, foreign };
}

const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? `${value}` : '';

const hookOf = ({ type, hook, prio, policy }: Json): string =>
  hook === undefined ? '' : [type, hook, prio, policy].map(textOf).join(' ');

export const shapeOf = (type: string, value: string, interval: boolean): string =>
  `${type} : ${value}${interval ? ' interval' : ''}`;

function setOf(set: Json): SetState {
  const list = (value: unknown): string => (Array.isArray(value) ? value : [value]).map(textOf).join(' . ');
  const flags = (set['flags'] ?? []) as unknown[];
  const elements = new Map<string, Element>();
  for (const entry of (set['elem'] ?? []) as unknown[]) {
    const [key, value] = set['map'] === undefined ? [entry] : (entry as unknown[]);
    const wrapped = (key as Json)['elem'] as Json | undefined;
    const [canonical, element] = elementOf({
      key: textOfKey(wrapped === undefined ? key : wrapped['val']),
      ...(value !== undefined && { value: textOfValue(value) }),
    });
    // An element with a comment, a counter or a time limit is not ours: it gets a value that none of ours can have.
    elements.set(canonical, wrapped === undefined ? element : { ...element, value: 'foreign' });
  }
  const strange = flags.filter((flag) => flag !== 'interval').map(textOf);
  const shape = shapeOf(list(set['type']), list(set['map']), flags.includes('interval'));
  return { comment: textOf(set['comment']), shape: [shape, ...strange].join(' '), elements };
}

function textOfKey(key: unknown): string {
  if (typeof key !== 'object' || key === null) return textOf(key);
  const { concat, prefix, range } = key as { concat?: unknown[]; prefix?: Json; range?: unknown[] };
  if (concat !== undefined) return concat.map(textOfKey).join(' . ');
  if (prefix !== undefined) return `${textOf(prefix['addr'])}/${textOf(prefix['len'])}`;
  return (range ?? []).map(textOf).join('-');
}

/** A verdict (`{"jump": {"target": "name"}}`, `{"drop": null}`) or a key. */
function textOfValue(value: unknown): string {
  const [kind = '', argument] =
    typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : [];
  if (kind === 'jump' || kind === 'goto') return `${kind} ${textOf((argument as Json)['target'])}`;
  return ['accept', 'drop', 'continue', 'return'].includes(kind) ? kind : textOfKey(value);
}

export interface Counter {
  packets: number;
  bytes: number;
}

/** Counters by the comment of their rule. Those with the same comment are added up. */
export function readCounters(json: string): Map<string, Counter> {
  const counters = new Map<string, Counter>();
  const { nftables } = JSON.parse(json) as { nftables: { rule?: { comment?: string; expr?: Json[] } }[] };
  for (const { rule } of nftables) {
    for (const { counter } of (rule?.expr ?? []) as { counter?: Counter }[]) {
      if (counter === undefined || rule?.comment === undefined) continue;
      const { packets = 0, bytes = 0 } = counters.get(rule.comment) ?? {};
      counters.set(rule.comment, { packets: packets + counter.packets, bytes: bytes + counter.bytes });
    }
  }
  return counters;
}
