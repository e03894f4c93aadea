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
