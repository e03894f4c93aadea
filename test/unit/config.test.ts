import { describe, expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.ts';

const parse = (
  options: Record<string, string> = {},
  env: Record<string, string> = {},
): ReturnType<typeof parseConfig> => parseConfig({ options, env, hostname: 'machine' });

describe('configuration of an agent', () => {
  test('defaults', () => {
    expect(parse()).toMatchObject({
      kubeconfig: undefined,
      logLevel: 'info',
      opsPort: 8080,
      kubeletPort: 10_250,
      systemNamespace: 'tributary-system',
      identity: 'machine',
    });
  });

  test('the pod tells its address, namespace and name; an option wins', () => {
    const env = { POD_IP: '10.0.0.1', POD_NAMESPACE: 'here', POD_NAME: 'agent-1', KUBECONFIG: '/k' };
    expect(parse({}, env)).toMatchObject({
      nodeAddress: '10.0.0.1',
      systemNamespace: 'here',
      identity: 'agent-1',
      kubeconfig: '/k',
    });
    expect(parse({ 'node-address': '10.0.0.2' }, env).nodeAddress).toBe('10.0.0.2');
  });

  test('the environment says how to get out to other clusters', () => {
    const env = { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: '.corp.example' };
    expect(parse({}, env).proxies).toMatchObject({
      proxy: { host: 'proxy.example', port: 3128 },
      except: '.corp.example',
    });
    expect(parse().proxies).toBeUndefined();
    expect(() => parse({}, { HTTPS_PROXY: 'socks5://x' })).toThrow(
      '$HTTPS_PROXY: a proxy of the scheme socks5',
    );
  });

  test('is frozen', () => {
    expect(Object.isFrozen(parse())).toBe(true);
  });

  test.each([
    [{ 'ops-port': 'http' }, '--ops-port must be a port, not "http"'],
    [{ 'kubelet-port': '70000' }, '--kubelet-port must be a port, not "70000"'],
    [{ 'log-level': 'loud' }, '--log-level must be one of debug, info, warn, error, not "loud"'],
    [{ 'tls-cert-file': '/c' }, '--tls-cert-file and --tls-private-key-file go together'],
  ])('%j is refused', (options, message) => {
    expect(() => parse(options as Record<string, string>)).toThrow(message);
  });

  test('all mistakes are told together', () => {
    expect(() => parse({ 'ops-port': '-1', 'log-level': 'loud' })).toThrow(/log-level.*; .*ops-port/u);
  });
});

test.each([
  ['pod-cidr', '10.244.0.0', '--pod-cidr: "10.244.0.0" is not a CIDR'],
  ['view-pools', '100.64.0.0/10,nonsense', '--view-pools: "nonsense" is not a CIDR'],
  ['service-cidr', '10.96.1.0/16', 'write 10.96.0.0/16'],
  ['external-cidr', '10.70.0.0/20,10.71.0.0/20', '--external-cidr is one CIDR'],
  ['cluster-dns', 'kube-dns', '--cluster-dns: "kube-dns" is no address'],
  ['cluster-dns', '10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4', 'more than 3 addresses'],
  ['cluster-domain', 'Cluster Local', '--cluster-domain: "Cluster Local" is no domain'],
  ['tunnel-endpoint', 'foo', '--tunnel-endpoint: not HOST:PORT'],
  [
    'advertise',
    'rome.example:7443,rome.example',
    '--advertise: not HOST:PORT or [IPv6]:PORT: "rome.example"',
  ],
  ['api-server', 'rome.example:6443', '--api-server: "rome.example:6443" is no https URL'],
  ['api-server', 'http://rome.example', 'is no https URL'],
  ['home-api-server', 'rome.example', '--home-api-server: "rome.example" is not HOST:PORT'],
  ['home-api-server', 'rome.example:99999', '"rome.example:99999" is not HOST:PORT'],
])('--%s %s is a mistake', (name, value, message) => {
  expect(() => parseConfig({ options: { [name]: value }, env: {}, hostname: 'h' })).toThrow(message);
});

test('the external range must not lie in what is used', () => {
  const options = { 'pod-cidr': '10.244.0.0/16', 'external-cidr': '10.244.16.0/20' };
  const message = '--external-cidr 10.244.16.0/20 overlaps with 10.244.0.0/16';
  expect(() => parseConfig({ options, env: {}, hostname: 'h' })).toThrow(message);
});

test('the ways to API servers are taken apart once', () => {
  const options = { 'api-server': 'https://rome.example:6443', 'home-api-server': '[fd00::1]:6443' };
  expect(parseConfig({ options, env: {}, hostname: 'h' })).toMatchObject({
    apiServer: 'https://rome.example:6443',
    homeApiServer: { host: 'fd00::1', port: 6443 },
  });
});

test('a gateway that cannot be dialled has no endpoints; one that says nothing has its own', () => {
  const endpoints = (options: Record<string, string>): unknown =>
    parseConfig({ options, env: {}, hostname: 'h' }).tunnelEndpoints;
  expect(endpoints({ 'tunnel-endpoint': 'none' })).toEqual([]);
  expect(endpoints({ 'tunnel-endpoint': 'vpn.example.org:51820' })).toEqual(['vpn.example.org:51820']);
  expect(endpoints({})).toBeUndefined();
});

test('the DNS of this cluster, as people name it', () => {
  const dns = (options: Record<string, string>): object => parse(options);
  expect(dns({})).toMatchObject({ clusterDns: [], clusterDomain: undefined });
  expect(dns({ 'cluster-dns': '10.96.0.10,fd00:96::a', 'cluster-domain': 'rome.example.' })).toMatchObject({
    clusterDns: ['10.96.0.10', 'fd00:96::a'],
    clusterDomain: 'rome.example',
  });
});
