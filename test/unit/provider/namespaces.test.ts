import { describe, expect, test } from '@jest/globals';
import { effectiveMappings } from '../../../src/provider/namespaces.ts';

describe('mappings', () => {
  const map = (text: string): { homeNamespace: string; tenantNamespace: string }[] =>
    text
      .split(' ')
      .filter(Boolean)
      .map((pair) => {
        const [homeNamespace = '', tenantNamespace = ''] = pair.split('>');
        return { homeNamespace, tenantNamespace };
      });
  test.each([
    ['asked', { asked: 'a>x', recorded: '', inUse: true }, 'a>x'],
    ['taken out, in use', { asked: 'a>x', recorded: 'a>x b>y', inUse: true }, 'a>x b>y'],
    ['taken out, empty', { asked: 'a>x', recorded: 'a>x b>y', inUse: false }, 'a>x'],
    ['all taken out', { asked: '', recorded: 'a>x', inUse: true }, 'a>x'],
    [
      'back under another tenant namespace, the old one in use',
      { asked: 'a>new', recorded: 'a>old', inUse: true },
      'a>old',
    ],
    [
      'back under another tenant namespace, the old one empty',
      { asked: 'a>new', recorded: 'a>old', inUse: false },
      'a>new',
    ],
  ])('%s', (_what, { asked, recorded, inUse }, expected) => {
    expect(effectiveMappings(map(asked), map(recorded), () => inUse)).toEqual(map(expected));
  });
});
