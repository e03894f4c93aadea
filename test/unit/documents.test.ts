import { describe, expect, test } from '@jest/globals';

import { blocksIn, blocksOf, DOCUMENTS, typedIn } from '../e2e/documents/support/blocks.ts';
import { gaps, NOT_RUN, unused } from '../e2e/documents/support/coverage.ts';
import { replaced } from '../e2e/documents/support/reading.ts';
import { ALL } from '../e2e/documents/support/readings.ts';
import { missing } from '../e2e/documents/support/shape.ts';

/** Each command of a document is run on real clusters by test/e2e/documents, which is in the long lane; here nothing is run. */

const BLOCKS = DOCUMENTS.flatMap(blocksOf);

describe('blocks of documents', () => {
  test('each is run by a test, or has a reason', () => {
    expect(BLOCKS.length).toBeGreaterThan(80);
    expect(gaps(BLOCKS, ALL, NOT_RUN)).toEqual([]);
  });

  test('all that is replaced is there', () => {
    expect(unused(BLOCKS, ALL)).toEqual([]);
  });

  test('a block that nobody runs is found, and so is one that is run no longer', () => {
    const planted = blocksIn(
      'README.md',
      '```sh\nmake demo\n```\n\n```sh\nmake lab-up && npm run lab\n```\n\n1. Then\n\n   ```sh\n   tributary new\n   ```\n',
    );
    const others = BLOCKS.filter(({ document }) => document !== 'README.md');
    expect(gaps([...others, ...planted], ALL, NOT_RUN)).toEqual([
      'nothing runs README.md:12 tributary new',
      '0 blocks of README.md begin with: tributary install --context rome',
    ]);
  });
});

describe('what is read of a document', () => {
  test('only blocks of a shell, without their indentation', () => {
    const markdown = 'a\n\n```yaml\nkind: Pod\n```\n\n   ```sh\n   one\n     two\n   ```\n';
    expect(blocksIn('x.md', markdown)).toEqual([
      { document: 'x.md', line: 8, isConsole: false, text: 'one\n  two' },
    ]);
  });

  test('of a console, what is typed and what is printed', () => {
    const text = '$ apply <<END\na: 1\nEND\n$ get \\\n  x\nNAME   AGE\na      5m\n$ end';
    expect(typedIn(text)).toEqual([
      { command: 'apply <<END\na: 1\nEND', printed: [] },
      { command: 'get \\\n  x', printed: ['NAME   AGE', 'a      5m'] },
      { command: 'end', printed: [] },
    ]);
  });

  test('names are replaced where they are whole words', () => {
    expect(replaced('NAME NAMESPACE --x=NAME', { NAME: '$(a)' }, undefined)).toBe('$(a) NAMESPACE --x=$(a)');
  });
});

describe('what a command has printed', () => {
  const TABLE = ['NAME   READY   AGE', 'web-6d4b75cb6d-abcde   1/1     2m'];

  test('may differ in ages, addresses, names made by chance', () => {
    expect(missing(TABLE, 'NAME    READY   AGE\nweb-5f6b75cb6d-xyzzy   1/1    13s\n')).toEqual([]);
    expect(missing(['x ... denied'], 'x 10.0.0.1:80: denied')).toEqual([]);
  });

  test('must have the same columns, and all lines that are shown', () => {
    expect(missing(TABLE, 'NAME   READY   AGE   NODE\nweb-6d4b75cb6d-abcde   1/1     2m')).toEqual([
      TABLE[0],
    ]);
    expect(missing(TABLE, 'NAME   READY   AGE\nweb-6d4b75cb6d-abcde   0/1     2m')).toEqual([]);
    expect(missing(TABLE, 'NAME   READY   AGE')).toEqual([TABLE[1]]);
    expect(missing(TABLE, 'NAME   READY   AGE', 'header')).toEqual([]);
  });
});
