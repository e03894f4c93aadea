import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

import { runTool } from '../../../../src/network/host/tool.ts';

const KEY = 'yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=';

describe('runTool', () => {
  it('hands input and secrets over without a shell, an environment or a file with a name', async () => {
    const secrets = ['one', 'two'];
    const result = await runTool('cat', ['-', '/dev/fd/3', '/dev/fd/4', '$HOME'], { input: 'in ', secrets });
    expect(result.output).toBe('in onetwo');
    expect(result.code).toBe(1);
    expect(result.complaint).toBe("cat: '$HOME': No such file or directory");
    expect((await runTool('env', [])).output.split('\n').map((line) => line.split('=')[0])).toEqual([
      'LC_ALL',
      'PATH',
      '',
    ]);
  });

  it('closes what it has opened', async () => {
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 5; round++) await runTool('true', [], { secrets: ['a', 'b', 'c'] });
    expect(readdirSync('/proc/self/fd').length).toBeLessThan(before + 5);
  });

  it('says which program is missing', async () => {
    await expect(runTool('no-such-program', [])).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringMatching(/^no-such-program cannot be run: it is not installed/),
    });
  });

  it('takes no keys into messages, and makes one line of them', async () => {
    const { complaint } = await runTool('ls', [`/${KEY}`, '/none\n^^^']);
    expect(complaint).not.toContain(KEY.slice(0, 40));
    expect(complaint).not.toContain('\n');
  });

  it('survives a program that does not read its input', async () => {
    expect(await runTool('true', [], { input: 'x'.repeat(2 ** 21) })).toMatchObject({ code: 0 });
  });

  it('stops by the signal', async () => {
    const controller = new AbortController();
    const running = runTool('sleep', ['60'], { signal: controller.signal });
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: 'Aborted' });
    await expect(runTool('true', [], { signal: controller.signal })).rejects.toMatchObject({
      code: 'Aborted',
    });
  });
});
