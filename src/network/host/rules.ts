import {
  canonicalPrefix,
  type Family,
  familyOf,
  KERNEL_FAMILY,
  parsePrefix,
  prefixText,
} from './addresses.ts';
import { type HostConfig, PROTOCOLS, type RuleConfig } from './host-config.ts';
import {
  type Attribute,
  decodeAttributes,
  DELETE_RULE,
  encodeAttributes,
  GET_RULE,
  NEW_RULE,
  optionalU32,
  readText,
  RULE_BYTES,
  ruleHeader,
  text,
  u32,
  u8,
} from './messages.ts';
import { CREATE, EXCLUSIVE, type Rtnetlink } from './rtnetlink.ts';
import { diffSets, type HostContext, type SetDiff } from './work.ts';

/** One rule of policy routing as the kernel has it, with canonical prefixes. */
export interface KernelRule extends RuleConfig {
  protocol: number;
  /** Whether the rule looks up its table and has only conditions that we know. */
  isPlain: boolean;
}

export async function setRules({ kernel, work }: HostContext, { owner, rules }: HostConfig): Promise<void> {
  const { add, remove } = diffRules(PROTOCOLS[owner], rules, await dumpRules(kernel));
  for (const rule of add) {
    await work.change(describeRule(rule), async () => addRule(kernel, rule));
  }
  for (const rule of remove) {
    await work.remove(describeRule(rule), async () => deleteRule(kernel, rule));
  }
}

/** FRA_* of linux/fib_rules.h. */
const FRA = {
  to: 1,
  from: 2,
  incoming: 3,
  priority: 6,
  suppressGroup: 13,
  suppressLength: 14,
  table: 15,
  protocol: 21,
} as const;
const PLAIN: ReadonlySet<number> = new Set(Object.values(FRA));
const ACTION_TO_TABLE = 1;
const NOT_SUPPRESSED = 0xffffffff;
const FIB_RULE_INVERT = 2;

/** Our rules are known by their protocol. A rule of others that says the same is as good as ours: the kernel takes no second one. */
export function diffRules(
  protocol: number,
  wanted: readonly RuleConfig[],
  actual: readonly KernelRule[],
): SetDiff<KernelRule> {
  const rules = wanted.map(({ from, to, ...rule }): KernelRule => ({
    ...rule,
    ...(from !== undefined && { from: canonicalPrefix(from) }),
    ...(to !== undefined && { to: canonicalPrefix(to) }),
    protocol,
    isPlain: true,
  }));
  const { add, remove } = diffSets(rules, actual, describeRule);
  return { add, remove: remove.filter((rule) => rule.protocol === protocol) };
}

/** The rule as `ip rule` writes it. Equal rules have equal texts. */
export function describeRule(rule: KernelRule): string {
  const { family, priority, incoming, from, to, table, isPlain } = rule;
  const parts = [`rule ${priority}: from ${from ?? 'all'}`];
  if (to !== undefined) parts.push(`to ${to}`);
  if (incoming !== undefined) parts.push(`iif ${incoming}`);
  parts.push(`lookup ${table} of IPv${family}`);
  if (!isPlain) parts.push('and more');
  return parts.join(' ');
}

export async function dumpRules(kernel: Rtnetlink): Promise<KernelRule[]> {
  const any = ruleHeader({ family: 0, toLength: 0, fromLength: 0, action: 0 });
  return (await kernel.dump(GET_RULE, any)).flatMap((message) => parseRule(message) ?? []);
}

export function parseRule(message: Buffer): KernelRule | undefined {
  const [kernelFamily = 0, toLength = 0, fromLength = 0, tos, shortTable = 0, , , action] = message;
  const family = familyOf(kernelFamily);
  if (family === undefined) return undefined;
  const attributes = decodeAttributes(message.subarray(RULE_BYTES));
  const isInverted = ((message[8] ?? 0) & FIB_RULE_INVERT) !== 0;
  return {
    family,
    priority: optionalU32(attributes.get(FRA.priority)) ?? 0,
    table: optionalU32(attributes.get(FRA.table)) ?? shortTable,
    protocol: attributes.get(FRA.protocol)?.[0] ?? 0,
    isPlain: tos === 0 && action === ACTION_TO_TABLE && !isInverted && hasNoMore(attributes),
    ...conditions(attributes, toLength, fromLength),
  };
}

function conditions(
  attributes: Map<number, Buffer>,
  toLength: number,
  fromLength: number,
): Pick<RuleConfig, 'from' | 'to' | 'incoming'> {
  const [to, from, incoming] = [FRA.to, FRA.from, FRA.incoming].map((type) => attributes.get(type));
  return {
    ...(to && { to: prefixText(to, toLength) }),
    ...(from && { from: prefixText(from, fromLength) }),
    ...(incoming && { incoming: readText(incoming) }),
  };
}

function hasNoMore(attributes: Map<number, Buffer>): boolean {
  const limits = [FRA.suppressGroup, FRA.suppressLength].map((type) => optionalU32(attributes.get(type)));
  const isSuppressed = limits.some((limit) => limit !== undefined && limit !== NOT_SUPPRESSED);
  return !isSuppressed && [...attributes.keys()].every((type) => PLAIN.has(type));
}

export async function addRule(kernel: Rtnetlink, rule: KernelRule): Promise<void> {
  await kernel.write(NEW_RULE, CREATE | EXCLUSIVE, ruleMessage(rule));
}

/** Names the protocol, too, so that the kernel never removes a rule of somebody else. */
export async function deleteRule(kernel: Rtnetlink, rule: KernelRule): Promise<void> {
  await kernel.write(DELETE_RULE, 0, ruleMessage(rule));
}

function ruleMessage({ family, priority, incoming, from, to, table, protocol }: KernelRule): Buffer {
  const [toPrefix, fromPrefix] = [to, from].map((prefix) => (prefix ? parsePrefix(prefix) : undefined));
  const attributes: Attribute[] = [
    [FRA.priority, u32(priority)],
    [FRA.table, u32(table)],
    [FRA.protocol, u8(protocol)],
  ];
  if (toPrefix) attributes.push([FRA.to, toPrefix.bytes]);
  if (fromPrefix) attributes.push([FRA.from, fromPrefix.bytes]);
  if (incoming !== undefined) attributes.push([FRA.incoming, text(incoming)]);
  const header = ruleHeader({
    family: KERNEL_FAMILY[family satisfies Family],
    toLength: toPrefix?.length ?? 0,
    fromLength: fromPrefix?.length ?? 0,
    action: ACTION_TO_TABLE,
  });
  return Buffer.concat([header, encodeAttributes(attributes)]);
}
