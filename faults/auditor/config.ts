/** The file that the auditor is started with. */
import { readFileSync } from 'node:fs';

import { canaryOf } from './checks/secrets.ts';

export interface ProviderConfig {
  readonly name: string;
  readonly kubeconfig: string;
  /** The virtual node at home. */
  readonly node: string;
  readonly namespaces: readonly { readonly home: string; readonly tenant: string }[];
}

export interface Config {
  readonly home: { readonly kubeconfig: string };
  readonly providers: readonly ProviderConfig[];
  /** Values that must stand nowhere but in Secrets. */
  readonly canaries: readonly string[];
  /** Files in which they must not stand. */
  readonly logs: readonly string[];
  /** Names of network namespaces of gateways. */
  readonly hosts: readonly string[];
  /** Of other runs against the same API servers. */
  readonly ignoreNamespaces: readonly string[];
  readonly ignoreNodes: readonly string[];
  readonly bounds: Bounds;
}

export interface Bounds {
  /** At most so long it takes until no difference is left. */
  readonly settleSeconds: number;
  /** Then nothing is written for this time. */
  readonly quietSeconds: number;
  /** Two clusters may tell of what happened at the same time so far apart. */
  readonly skewSeconds: number;
}

const DEFAULTS: Bounds = { settleSeconds: 60, quietSeconds: 3, skewSeconds: 5 };

/** @throws {Error} that names what is wrong */
export function readConfig(path: string): Config {
  return configOf(JSON.parse(readFileSync(path, 'utf8')) as unknown);
}

export function configOf(value: unknown): Config {
  const { home, providers, bounds, ...lists } = fieldsOf(value, 'the configuration');
  const seconds = { ...DEFAULTS, ...(bounds === undefined ? {} : fieldsOf(bounds, 'bounds')) };
  for (const [name, number] of Object.entries(seconds))
    if (!(name in DEFAULTS) || !(number > 0)) throw new Error(`bounds.${name} must be a number of seconds`);
  if (!Array.isArray(providers)) throw new Error('providers must be a list');
  const config: Config = {
    home: { kubeconfig: textOf(fieldsOf(home, 'home')['kubeconfig'], 'home.kubeconfig') },
    providers: providers.map((one, index) => providerOf(one, `providers[${index}]`)),
    canaries: textsOf(lists, 'canaries'),
    logs: textsOf(lists, 'logs'),
    hosts: textsOf(lists, 'hosts'),
    ignoreNamespaces: textsOf(lists, 'ignoreNamespaces'),
    ignoreNodes: textsOf(lists, 'ignoreNodes'),
    bounds: seconds,
  };
  const short = config.canaries.findIndex((canary, index) => !canaryOf(canary, index).forms.includes(canary));
  if (short >= 0) throw new Error(`canaries[${short}] is too short: it would be found by chance`);
  const names = ['home', ...config.providers.map(({ name }) => name)];
  if (new Set(names).size < names.length)
    throw new Error(`names of clusters must differ: ${names.join(', ')}`);
  return config;
}

function providerOf(value: unknown, where: string): ProviderConfig {
  const { name, kubeconfig, node, namespaces } = fieldsOf(value, where);
  if (!Array.isArray(namespaces)) throw new Error(`${where}.namespaces must be a list`);
  return {
    name: textOf(name, `${where}.name`),
    kubeconfig: textOf(kubeconfig, `${where}.kubeconfig`),
    node: textOf(node, `${where}.node`),
    namespaces: namespaces.map((pair: unknown) => {
      const { home, tenant } = fieldsOf(pair, `${where}.namespaces`);
      return {
        home: textOf(home, `${where}.namespaces.home`),
        tenant: textOf(tenant, `${where}.namespaces.tenant`),
      };
    }),
  };
}

function fieldsOf(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error(`${where} must be an object`);
  return value as Record<string, unknown>;
}

function textOf(value: unknown, where: string): string {
  if (typeof value !== 'string' || value === '') throw new Error(`${where} must be a text`);
  return value;
}

function textsOf(lists: Record<string, unknown>, name: string): string[] {
  const value = lists[name] ?? [];
  if (!Array.isArray(value)) throw new Error(`${name} must be a list of texts`);
  return value.map((one) => textOf(one, name));
}
