import { expect, test } from '@jest/globals';
import { joined, type Switched } from '../../../tools/generate/chart-lines.ts';

const forms = (
  switches: readonly string[],
  form: (on: Readonly<Record<string, boolean>>) => string[],
): Switched<string[]>[] => {
  const all = switches.reduce<Record<string, boolean>[]>(
    (before, name) => before.flatMap((one) => [false, true].map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
  return all.map((one) => ({ switches: one, form: form(one) }));
};

test('lines that a switch adds, takes away or changes get a condition', () => {
  const text = ({ a = false }: Readonly<Record<string, boolean>>): string[] => [
    'one',
    ...(a ? ['  two'] : []),
    'three',
    a ? 'yes' : 'no',
    ...(a ? [] : ['end']),
  ];
  expect(joined(['a'], forms(['a'], text))).toEqual([
    'one',
    '  {{- if .Values.a }}',
    '  two',
    '  {{- end }}',
    'three',
    '{{- if .Values.a }}',
    'yes',
    '{{- else }}',
    'no',
    'end',
    '{{- end }}',
  ]);
});

test('an object that a switch makes is one block, and lines of another switch lie in it', () => {
  const text = ({ a = false, b = false }: Readonly<Record<string, boolean>>): string[] =>
    a ? ['one', ...(b ? ['two'] : [])] : [];
  expect(joined(['b', 'a'], forms(['b', 'a'], text))).toEqual([
    '{{- if .Values.a }}',
    'one',
    '{{- if .Values.b }}',
    'two',
    '{{- end }}',
    '{{- end }}',
  ]);
});
