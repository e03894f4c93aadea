import type { Manifest } from '../manifest.ts';
import { LABEL_APP_NAME, APP_NAME } from '../manifest.ts';
import type { ResourceType } from '../resources.ts';
import type { KubeObject } from '../wire.ts';
import type { Schema } from './schema.ts';

export interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  jsonPath: string;
  description: string;
  /** 0 shows in `kubectl get`, 1 only with `-o wide`. */
  priority?: number;
}

/** One kind of ours, as people write it down in src/api/crd. */
export interface Definition {
  type: ResourceType<KubeObject>;
  shortNames: readonly string[];
  /** The whole object; Kubernetes fills in apiVersion, kind and metadata. */
  schema: Schema;
  columns: readonly PrinterColumn[];
}

export interface CustomResourceDefinition extends Manifest {
  spec: object;
}

/** The manifest of a kind, with `status` as a subresource: who may write one may not write the other. */
export function forgeDefinition(definition: Definition): CustomResourceDefinition {
  const { type, shortNames, schema, columns } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${type.plural}.${type.group}`, labels: { [LABEL_APP_NAME]: APP_NAME } },
    spec: {
      group: type.group,
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: type.kind,
        listKind: `${type.kind}List`,
        plural: type.plural,
        singular: type.kind.toLowerCase(),
        shortNames,
        categories: [APP_NAME],
      },
      versions: [
        {
          name: type.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
}
