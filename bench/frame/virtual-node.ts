import type { NamespaceMapping, VirtualNode } from '../../src/api/virtual-node.ts';

interface VirtualNodeObjects {
  /** Of the virtual node, and of the namespace at home whose pods it runs. */
  readonly name: string;
  readonly kubeconfig: string;
  readonly namespace: Omit<NamespaceMapping, 'homeNamespace'>;
  readonly resources: NonNullable<VirtualNode['spec']['resources']>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A virtual node with its credential, as people apply them by hand. */
export function virtualNodeObjects({
  name,
  kubeconfig,
  namespace,
  resources,
  labels,
}: VirtualNodeObjects): object[] {
  const secret = { namespace: name, name: 'foreign-kubeconfig' };
  const spec: VirtualNode['spec'] = {
    kubeconfigSecretRef: secret,
    resources,
    namespaces: [{ homeNamespace: name, ...namespace }],
  };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: secret, stringData: { kubeconfig } },
    {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'VirtualNode',
      metadata: { name, ...(labels && { labels }) },
      spec,
    },
  ];
}
