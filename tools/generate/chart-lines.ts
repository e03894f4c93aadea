/** Several forms of a text, one for each combination of switches, become one template with conditions around lines. Pure. */

export interface Switched<Form> {
  readonly switches: Readonly<Partial<Record<string, boolean>>>;
  readonly form: Form;
}

/** The template of which each form is what the switches make of it. */
export function joined(switches: readonly string[], forms: readonly Switched<readonly string[]>[]): string[] {
  const [name, ...others] = switches;
  if (name === undefined) return [...(forms[0]?.form ?? [])];
  const of = (value: boolean): string[] =>
    joined(
      others,
      forms.filter((one) => (one.switches[name] ?? false) === value),
    );
  return either(`.Values.${name}`, of(true), of(false));
}

/** Lines that both have stay as they are; the others get a condition. */
function either(condition: string, yes: readonly string[], no: readonly string[]): string[] {
  const parts = differences(yes, no);
  const isWhole = parts.every((part) => 'both' in part || (isBalanced(part.yes) && isBalanced(part.no)));
  const usable = isWhole ? parts : [{ yes, no }];
  return usable.flatMap((part) => ('both' in part ? part.both : conditional(condition, part.yes, part.no)));
}

function conditional(condition: string, yes: readonly string[], no: readonly string[]): string[] {
  const indent = /^ */.exec(yes[0] ?? no[0] ?? '')?.[0] ?? '';
  const end = `${indent}{{- end }}`;
  if (no.length === 0) return [`${indent}{{- if ${condition} }}`, ...yes, end];
  if (yes.length === 0) return [`${indent}{{- if not ${condition} }}`, ...no, end];
  return [`${indent}{{- if ${condition} }}`, ...yes, `${indent}{{- else }}`, ...no, end];
}

/** Every block that begins here also ends here. */
function isBalanced(lines: readonly string[]): boolean {
  let depth = 0;
  for (const line of lines) {
    if (/\{\{- (if|with|range) /.test(line)) depth += 1;
    if (line.includes('{{- end }}')) depth -= 1;
    if (depth < 0 || (depth === 0 && line.includes('{{- else }}'))) return false;
  }
  return depth === 0;
}

type Part = { both: string[] } | { yes: string[]; no: string[] };

/** By the longest common subsequence. */
function differences(yes: readonly string[], no: readonly string[]): Part[] {
  if (yes.join('\n') === no.join('\n')) return [{ both: [...yes] }];
  if (yes.length === 0 || no.length === 0) return [{ yes: [...yes], no: [...no] }];
  const lengths = commonLengths(yes, no);
  const parts: Part[] = [];
  let [i, j] = [0, 0];
  while (i < yes.length || j < no.length) {
    const [a, b] = [yes[i], no[j]];
    const side = sideOf(a, b, lengthAt(lengths, i + 1, j) >= lengthAt(lengths, i, j + 1));
    add(parts, side, (side === 'no' ? b : a) ?? '');
    if (side !== 'no') i += 1;
    if (side !== 'yes') j += 1;
  }
  return parts;
}

const lengthAt = (lengths: readonly number[][], i: number, j: number): number => lengths[i]?.[j] ?? 0;

/** To whom the next line belongs; `isYesFirst` decides where either could be next. */
function sideOf(yes: string | undefined, no: string | undefined, isYesFirst: boolean): 'both' | 'yes' | 'no' {
  if (yes === no) return 'both';
  if (no === undefined) return 'yes';
  return yes !== undefined && isYesFirst ? 'yes' : 'no';
}

function add(parts: Part[], side: 'both' | 'yes' | 'no', line: string): void {
  const last = parts.at(-1);
  if (side === 'both') {
    if (last !== undefined && 'both' in last) last.both.push(line);
    else parts.push({ both: [line] });
    return;
  }
  if (last !== undefined && !('both' in last)) last[side].push(line);
  else parts.push({ yes: [], no: [], [side]: [line] });
}

/** For each pair of positions, how many lines the rests have in common. */
function commonLengths(yes: readonly string[], no: readonly string[]): number[][] {
  const lengths = Array.from({ length: yes.length + 1 }, () =>
    Array.from({ length: no.length + 1 }, () => 0),
  );
  for (let i = yes.length - 1; i >= 0; i -= 1) {
    for (let j = no.length - 1; j >= 0; j -= 1) {
      const row = lengths[i];
      if (row === undefined) continue;
      const [below, beside, across] = [
        lengths[i + 1]?.[j] ?? 0,
        row[j + 1] ?? 0,
        lengths[i + 1]?.[j + 1] ?? 0,
      ];
      row[j] = yes[i] === no[j] ? across + 1 : Math.max(below, beside);
    }
  }
  return lengths;
}
