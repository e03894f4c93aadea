import { expect, test } from '@jest/globals';

import { edited, imageEnvironment, imageFlags } from '../../../lab/compiled-program.ts';

const edit = (find: string, replace: string): Parameters<typeof edited>[1] => ({
  file: 'src/a.ts',
  find,
  replace,
});

test('an edit replaces what occurs once, and takes its text as it is', () => {
  expect(edited('if (a) return b;', edit('if (a)', "if (!a && '$&$1')"))).toBe("if (!a && '$&$1') return b;");
  expect(edited('a\nb\nc', edit('b\n', ''))).toBe('a\nc');
});

test.each([
  ['never', 'a b', 0],
  ['twice', 'x a x', 2],
])('an edit of what occurs %s is refused, with the file and the text', (_how, text, times) => {
  expect(() => edited(text, edit('x', 'y'))).toThrow(
    `src/a.ts has ${times} times, not once, what an edit replaces: x`,
  );
});

test('an edit of nothing is refused', () => {
  expect(() => edited('ab', edit('', 'y'))).toThrow('not once');
});

test('programs have the environment of the image', () => {
  expect(imageEnvironment()).toEqual({
    NODE_ENV: 'production',
    MALLOC_ARENA_MAX: '1',
    MALLOC_MMAP_THRESHOLD_: '73728',
  });
});

test('programs have the flags of the image, without the interpreter and the program', () => {
  const flags = imageFlags();
  expect(flags).toContain('--max-old-space-size=256');
  expect(flags.filter((flag) => !flag.startsWith('--'))).toEqual([]);
});
