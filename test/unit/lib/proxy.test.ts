import { describe, expect, test } from '@jest/globals';
import { splitEndpoint } from '../../../src/lib/endpoint.ts';
import { parseProxy, proxyFor, proxySettings } from '../../../src/lib/proxy.ts';

const HTTPS_PROXY = 'http://proxy.example:3128';

/** Whether that place is dialled through the proxy. */
function isThrough(place: string, noProxy: string): boolean {
  const at = splitEndpoint(place);
  if (at === undefined) throw new Error(place);
  return proxyFor(proxySettings({ HTTPS_PROXY, NO_PROXY: noProxy }), at) !== undefined;
}

// As the tests of golang.org/x/net/http/httpproxy have it.
test.each([
  ['milan.example:7443', '', true],
  ['192.0.2.1:6443', '', true],
  ['[2001:db8::1]:6443', '', true],
  ['localhost:6443', '', false],
  ['127.0.0.1:6443', '', false],
  ['127.8.8.8:6443', '', false],
  ['[::1]:6443', '', false],
  ['[fe80::1%eth0]:6443', '', false],
  ['not-localhost:6443', '', true],
  ['milan.example:7443', '*', false],
  ['192.0.2.1:6443', ' , *', false],
  ['milan.example:7443', 'example', false],
  ['milan.example:7443', 'milan.example', false],
  ['api.milan.example:7443', 'milan.example', false],
  ['xmilan.example:7443', 'milan.example', true],
  ['MILAN.example:7443', 'milan.EXAMPLE', false],
  ['milan.example:7443', '.milan.example', true],
  ['api.milan.example:7443', '.milan.example', false],
  ['api.milan.example:7443', '*.milan.example', false],
  ['milan.example:7443', '*.milan.example', true],
  ['milan.example:7443', 'rome.example, milan.example:7443', false],
  ['milan.example:7443', 'milan.example:443', true],
  ['192.0.2.1:6443', '192.0.2.1', false],
  ['192.0.2.1:6443', '192.0.2.1:6443', false],
  ['192.0.2.1:6443', '192.0.2.1:443', true],
  ['192.0.2.11:6443', '192.0.2.1', true],
  ['10.1.2.3:6443', '10.0.0.0/8', false],
  ['10.1.2.3:6443', '10.9.9.9/8', false],
  ['11.1.2.3:6443', '10.0.0.0/8', true],
  ['[fd00::7]:6443', 'fd00::/8', false],
  ['[fd00::7]:6443', 'fd00:0::7', false],
  ['[fd00::7]:6443', '[fd00::7]:6443', false],
  ['[fd00::7]:6443', '[fd00::7]:443', true],
  ['10.1.2.3:6443', '10.0.0.0/33,/8,x/8,:80,10.', true],
  ['ten.example:6443', '10.0.0.0/8', true],
])('%s with NO_PROXY "%s" goes through the proxy: %s', (place, noProxy, expected) => {
  expect(isThrough(place, noProxy)).toBe(expected);
});

describe('the environment', () => {
  test.each([
    [{}, undefined],
    [{ HTTPS_PROXY: '' }, undefined],
    [{ HTTP_PROXY: 'http://other:1' }, undefined],
    [{ https_proxy: 'http://small:1' }, 'small 1'],
    [{ HTTPS_PROXY, https_proxy: 'http://small:1' }, 'proxy.example 3128'],
    [{ HTTPS_PROXY: '', https_proxy: 'small:1' }, 'small 1'],
    [{ HTTPS_PROXY: 'proxy.example' }, 'proxy.example 80'],
    [{ HTTPS_PROXY: 'http://[fd00::1]:3128/' }, 'fd00::1 3128'],
  ])('%j', (env: Record<string, string>, expected) => {
    const { proxy } = proxySettings(env) ?? {};
    expect(proxy && `${proxy.host} ${proxy.port}`).toBe(expected);
  });

  test('user and password become a header, with what their escapes mean', () => {
    const { authorization, host } = parseProxy('http://me:p%40ss%3Aword@proxy.example:3128', 'x');
    expect(authorization).toBe(`Basic ${Buffer.from('me:p@ss:word').toString('base64')}`);
    expect(host).toBe('proxy.example');
    expect(parseProxy('proxy.example:3128', 'x').authorization).toBeUndefined();
  });

  test.each([
    ['socks5://me:hidden@proxy.example', '$HTTPS_PROXY: a proxy of the scheme socks5 is not supported'],
    ['https://me:hidden@proxy.example', 'a proxy of the scheme https is not supported'],
    ['http://me:hidden@', 'the proxy is not of the form http://[USER:PASSWORD@]HOST[:PORT]'],
    ['http://me:hid%den@proxy.example', 'write it as %25'],
    ['http://me:hidden@proxy.example:99999', 'is not of the form'],
  ])('%s is refused, and its password is not said', (text, message) => {
    const attempt = (): unknown => proxySettings({ HTTPS_PROXY: text });
    expect(attempt).toThrow(message);
    expect(attempt).not.toThrow(/hid/u);
  });
});
