import { beforeAll, expect, test } from '@jest/globals';
import { rereadToken } from '../../../src/kube/credentials.ts';
import { inClusterCredentials } from '../../../src/kube/in-cluster.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { type TestCertificate, selfSigned } from '../../support/certificate.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { growth } from '../../support/growth.ts';

let pair: TestCertificate;
let other: TestCertificate;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

beforeAll(async () => {
  [pair, other] = await Promise.all([selfSigned(), selfSigned()]);
});

interface Parts {
  cluster?: object;
  user?: object;
  context?: object;
  top?: object;
}

/** A good kubeconfig with a token, and parts of it replaced. */
function config({ cluster, user, context, top }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    contexts: [
      { name: 'main', context: { cluster: 'c', user: 'u', namespace: 'ns', ...context } },
      { name: 'other', context: { cluster: 'c', user: 'nobody' } },
    ],
    clusters: [
      {
        name: 'c',
        cluster: {
          server: 'https://api.example:6443',
          'certificate-authority-data': base64(pair.cert),
          ...cluster,
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'secret', ...user } }],
    ...top,
  });
}

test('the usual kubeconfig, in JSON and in YAML', async () => {
  const yaml = `
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: c, user: u, namespace: ns}}]
clusters:
- name: c
  cluster:
    server: https://api.example:6443
    certificate-authority-data: ${base64(pair.cert)}
users:
- name: u
  user: {token: secret}
`;
  for (const text of [config(), yaml]) {
    const { token, ...rest } = await parseKubeconfig(text);
    expect(rest).toEqual({ server: new URL('https://api.example:6443'), ca: pair.cert, namespace: 'ns' });
    expect(await token?.()).toBe('secret');
  }
});

test('a client certificate, a server name, a path', async () => {
  const user = {
    token: '',
    'client-certificate-data': base64(pair.cert),
    'client-key-data': base64(pair.key),
  };
  const cluster = { server: 'https://rancher.example/k8s/clusters/c-1', 'tls-server-name': 'api' };
  expect(await parseKubeconfig(config({ user, cluster }))).toEqual({
    server: new URL('https://rancher.example/k8s/clusters/c-1'),
    ca: pair.cert,
    clientCert: pair,
    tlsServerName: 'api',
    namespace: 'ns',
  });
});

test('a proxy, as kubectl knows it', async () => {
  const { proxy } = await parseKubeconfig(config({ cluster: { 'proxy-url': 'http://p.example:3128' } }));
  expect(proxy).toMatchObject({ host: 'p.example', port: 3128 });
});

test.each<[string, () => string, string]>([
  ['no text', () => '', 'not a mapping'],
  ['a list', () => '[]', 'not a mapping'],
  ['broken YAML', () => 'a: [', 'not YAML'],
  ['a bomb of aliases', () => 'a: &a [1]\nb: &b [*a,*a]\nc: [*b,*b]', 'not YAML'],
  ['a deep nest', () => '['.repeat(100_000), 'not '],
  ['too much', () => ' '.repeat(2 ** 18 + 1), 'longer than'],
  ['no context chosen', () => config({ top: { 'current-context': '' } }), 'no context given'],
  ['an unknown context', () => config({ top: { 'current-context': 'x' } }), 'context "x" is not in the file'],
  ['no lists', () => config({ top: { contexts: 7 } }), 'context "main" is not in the file'],
  ['no cluster', () => config({ context: { cluster: null } }), 'context "main" names no cluster'],
  [
    'an unknown cluster',
    () => config({ context: { cluster: 'x' } }),
    'context "main" names cluster "x", which is not in the file',
  ],
  [
    'an unknown user',
    () => config({ context: { user: 'y' } }),
    'context "main" names user "y", which is not in the file',
  ],
  ['no server', () => config({ cluster: { server: undefined } }), 'cluster "c" has no server'],
  ['http', () => config({ cluster: { server: 'http://169.254.169.254' } }), 'must be an https URL'],
  ['no URL', () => config({ cluster: { server: 'api:6443' } }), 'must be an https URL'],
  ['nonsense', () => config({ cluster: { server: 'not a url' } }), 'is not a URL'],
  ['a password in the URL', () => config({ cluster: { server: 'https://a:b@c' } }), 'may hold'],
  ['a number for a server', () => config({ cluster: { server: 7 } }), 'server must be a string'],
  ['a bad CA', () => config({ cluster: { 'certificate-authority-data': base64('x') } }), 'is not a PEM'],
  ['no base64', () => config({ cluster: { 'certificate-authority-data': '§' } }), 'is not base64'],
  ['skip and a CA', () => config({ cluster: { 'insecure-skip-tls-verify': true } }), 'exclude each other'],
  [
    'a SOCKS proxy',
    () => config({ cluster: { 'proxy-url': 'socks5://p' } }),
    'scheme socks5 is not supported',
  ],
  ['a number for a proxy', () => config({ cluster: { 'proxy-url': 3128 } }), 'proxy-url must be a string'],
  ['exec', () => config({ user: { exec: { command: 'rm' } } }), 'a token or a client certificate'],
  ['an auth provider', () => config({ user: { 'auth-provider': {} } }), 'uses auth-provider'],
  ['impersonation', () => config({ user: { as: 'system:admin' } }), 'uses as'],
  ['basic auth', () => config({ user: { username: 'x' } }), 'uses username'],
  [
    'a token with a line break',
    () => config({ user: { token: 'a\r\nX-Y: z' } }),
    'characters that no token has',
  ],
  [
    'a certificate without key',
    () => config({ user: { 'client-certificate-data': base64(pair.cert) } }),
    'needs client-certificate and client-key',
  ],
  [
    "another's key",
    () =>
      config({
        user: { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(other.key) },
      }),
    'client-key does not fit',
  ],
  [
    'a CA file',
    () => config({ cluster: { 'certificate-authority-data': null, 'certificate-authority': '/etc/passwd' } }),
    'must hold everything inline',
  ],
  ['a key file', () => config({ user: { 'client-certificate': '/a', 'client-key': '/b' } }), 'inline'],
  ['a token file', () => config({ user: { tokenFile: '/var/run/secrets/token' } }), 'inline'],
])('%s is refused in one line', async (_what, text, message) => {
  const readFile = (): Promise<string> => Promise.reject(new Error('a file was read'));
  const error = await parseKubeconfig(text(), { readFile }).catch((caught: Error) => caught);
  expect(error).toMatchObject({ code: 'Invalid', message: expect.stringContaining(message) });
  expect((error as Error).message).toMatch(/^kubeconfig: [^\n]+$/);
});

test('a hostile text costs no more than in proportion to its length', async () => {
  const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}: 1`).join('\n');
  const { unitCost, most } = await growth(2 ** 12, async (size) =>
    expect(parseKubeconfig(keys.slice(0, size))).rejects.toMatchObject({
      code: 'Invalid',
      // It was read: one that is too long is refused without that.
      message: expect.not.stringContaining('longer than'),
    }),
  );
  expect(unitCost).toBeLessThan(most);
});

test('keys of the prototype are just keys', async () => {
  const text = config({ top: { 'current-context': '__proto__' } });
  await expect(parseKubeconfig(text)).rejects.toThrow('context "__proto__" is not in the file');
  const polluted = config().replace('"apiVersion"', '"__proto__":{"current-context":"main"},"apiVersion"');
  expect(await parseKubeconfig(polluted)).toBeDefined();
  expect({}).not.toHaveProperty('current-context');
});

test('files are read where the user permits, relative to the kubeconfig, and the token again each minute', async () => {
  const clock = new FakeClock();
  const files: Record<string, string> = {
    '/home/x/ca.crt': pair.cert,
    '/home/x/crt': pair.cert,
    '/abs/key': pair.key,
    '/home/x/token': 'one\n',
  };
  const readFile = (path: string): Promise<string> =>
    path in files ? Promise.resolve(files[path] ?? '') : Promise.reject(new Error(`ENOENT ${path}`));
  const options = { allowFiles: true, baseDir: '/home/x', readFile, clock };
  const text = config({
    cluster: { 'certificate-authority-data': null, 'certificate-authority': 'ca.crt' },
    user: { tokenFile: 'token', 'client-certificate': 'crt', 'client-key': '/abs/key' },
  });
  const { ca, clientCert, token } = await parseKubeconfig(text, options);
  expect([ca, clientCert]).toEqual([pair.cert, pair]);
  expect(await token?.()).toBe('one');
  files['/home/x/token'] = 'two';
  await clock.advance(59_999);
  expect(await token?.()).toBe('one');
  await clock.advance(1);
  expect(await token?.()).toBe('two');
  const missing = config({ user: { 'client-certificate': 'no', 'client-key': '/abs/key' } });
  await expect(parseKubeconfig(missing, options)).rejects.toThrow('ENOENT /home/x/no');
});

test('a token that cannot be read for a while stays in use', async () => {
  const clock = new FakeClock();
  let broken = false;
  const token = rereadToken(
    () => (broken ? Promise.reject(new Error('gone')) : Promise.resolve('one')),
    clock,
  );
  expect(await token()).toBe('one');
  broken = true;
  await clock.advance(120_000);
  expect(await token()).toBe('one');
  await expect(rereadToken(() => Promise.reject(new Error('gone')), clock)()).rejects.toThrow('gone');
});

test('in a cluster', async () => {
  const files: Record<string, string> = { token: 'jwt\n', namespace: 'tributary', 'ca.crt': pair.cert };
  const readFile = (path: string): Promise<string> => {
    const name = path.replace('/var/run/secrets/kubernetes.io/serviceaccount/', '');
    return name in files ? Promise.resolve(files[name] ?? '') : Promise.reject(new Error(`ENOENT ${path}`));
  };
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  const credentials = await inClusterCredentials({ readFile, env });
  expect(credentials).toMatchObject({ ca: pair.cert, namespace: 'tributary' });
  expect(credentials.server.host).toBe('[fd00::1]');
  expect(await credentials.token?.()).toBe('jwt');
  await expect(inClusterCredentials({ readFile, env: {} })).rejects.toMatchObject({ code: 'Invalid' });
});
