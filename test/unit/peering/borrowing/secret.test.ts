import { expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../../../src/kube/kubeconfig.ts';
import type { Proxy } from '../../../../src/lib/proxy.ts';
import { parseProxy, type ProxySettings } from '../../../../src/lib/proxy.ts';
import { type Access, forgeSecret, readSecret } from '../../../../src/peering/borrowing/secret.ts';

const credential = { token: 'token', issuedMs: 0, expiresMs: 1000 };
const proxies = (except: string): ProxySettings => ({
  proxy: parseProxy('http://me:secret@proxy.example:3128', 'x'),
  except,
});

/** How an agent that reads the Secret reaches the provider. */
async function proxyOf(how: Access['how'], settings?: ProxySettings): Promise<Proxy | undefined> {
  const access: Access = { how, server: 'https://10.77.0.9:6443', serverName: 'milan.example' };
  const secret = forgeSecret('milan', 'tributary-system', { access, credential }, settings);
  // What is stored is how the provider is reached, whatever the proxy is today.
  expect(readSecret(secret as Parameters<typeof readSecret>[0])?.access).toEqual(access);
  const text = Buffer.from(secret.data?.['kubeconfig'] ?? '', 'base64').toString();
  return (await parseKubeconfig(text)).proxy;
}

test('the agent is told of the proxy by its kubeconfig, with user and password', async () => {
  expect(await proxyOf('Direct', proxies(''))).toEqual(proxies('').proxy);
});

test('but not where there is none, where NO_PROXY names the address, or where a link leads there', async () => {
  expect(await proxyOf('Direct')).toBeUndefined();
  expect(await proxyOf('Direct', proxies('10.77.0.0/16'))).toBeUndefined();
  // The way of a link begins at role cluster, in this cluster.
  expect(await proxyOf('Link', proxies(''))).toBeUndefined();
});
